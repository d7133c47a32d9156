#pragma once

#include <map>
#include <string>

#include "property_tests/report/console.hpp"
#include "property_tests/report/junit.hpp"
#include "property_tests/report/progress.hpp"
#include "property_tests/report/record.hpp"
#include "property_tests/run.hpp"

namespace attest {

/// What a person sees while a run goes: progress on one stream, failures in full on the other.
class RunScreen : public RunObserver {
 public:
  /// The first `in_full` failures of a backend are printed as blocks, the rest are counted.
  RunScreen(Console results, Progress progress, std::int64_t in_full, bool launches)
      : results_(std::move(results)),
        progress_(std::move(progress)),
        in_full_(in_full),
        show_launches_(launches) {}

  void begins(const Backend& backend, std::int64_t cases) override;
  void launches(const std::string& repro) override;
  void judged(const CaseResult& result, const BackendTally& so_far) override;
  void ends(const BackendTally& tally) override;

 private:
  void print(const std::string& text);

  Console results_;
  Progress progress_;
  std::int64_t in_full_;
  bool show_launches_;
  std::int64_t blocks_ = 0;
  std::map<std::string, std::int64_t> known_;  ///< by entry
  std::map<Verdict, std::int64_t> doubtful_;
};

/// Writes every case into a record as it is judged.
class RunRecorder : public RunObserver {
 public:
  explicit RunRecorder(RecordFile& file) : file_(file) {}
  void judged(const CaseResult& result, const BackendTally& /*so_far*/) override {
    file_.line(case_json(result));
  }

 private:
  RecordFile& file_;
};

/// Keeps every case for the JUnit file.
class JunitCollector : public RunObserver {
 public:
  void judged(const CaseResult& result, const BackendTally& /*so_far*/) override {
    report.add(result);
  }
  JunitReport report;
};

/// The text after a run: table, coverage, and what the failures were found by.
std::string run_summary_text(const RunSummary& summary, const Console& console);

}  // namespace attest
