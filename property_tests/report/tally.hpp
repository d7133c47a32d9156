#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "contracts/verdict.hpp"
#include "property_tests/report/result.hpp"

namespace attest {

inline constexpr std::array all_verdicts = {
    Verdict::pass,        Verdict::mismatch,  Verdict::rejected, Verdict::unsupported,
    Verdict::unavailable, Verdict::untrusted, Verdict::crashed,  Verdict::hung};

/// Sums of one backend over one run.
struct BackendTally {
  std::string backend;
  std::string engine;   ///< as the runs reported it; the name's until one ran
  std::string version;  ///< of the numerics profile
  std::string note;     ///< why it did not run, or stopped early; empty = it ran to its end
  std::int64_t planned = 0;
  bool without_a_case = false;  ///< the backend could not run at all: its one verdict is no case's
  std::array<std::int64_t, all_verdicts.size()> verdicts{};
  std::int64_t known = 0;  ///< failures that a list of known ones has; they count as no verdict
  /// Of all of these, the failures of earlier runs that were judged again, and still fail.
  std::int64_t found = 0, found_failed = 0;
  std::int64_t found_silent = 0;  ///< those that were not judged or could not fail: counted nowhere
  double seconds = 0;             ///< wall time of this backend's part
  double worst_over_bound = 0;
  double worst_z = 0;
  std::string worst_case;  ///< name of the case with the largest error / bound
  std::map<std::string, std::int64_t> features;
  std::map<std::string, std::int64_t> failure_kinds;

  void add(const CaseResult& result);
  /// The whole backend counts as one verdict, of no case.
  void judges_nothing(Verdict verdict, std::string why);

  std::int64_t count(Verdict verdict) const { return verdicts[static_cast<std::size_t>(verdict)]; }
  std::int64_t cases() const;   ///< verdicts of cases
  std::int64_t failed() const;  ///< mismatch, rejected, crashed, hung
};

/// Exit code of a run over several backends, from the one table in contracts/verdict.hpp. Cases
/// that were counted nowhere (nothing ran) give the usage error.
int exit_code(std::span<const BackendTally> tallies);

/// The table at the end of a run. Columns for unavailable, crashed and hung appear when they count
/// anything.
std::string tally_table(std::span<const BackendTally> tallies, const class Console& console);

/// "coverage  scalar.unified@cpu: uneven 61 %, window 24 %, ...", for each backend that ran; of
/// more than three that nobody compares, for all of them together.
std::string coverage_lines(std::span<const BackendTally> tallies);

}  // namespace attest
