#include "property_tests/run_screen.hpp"

#include "contracts/printable.hpp"
#include "property_tests/report/failure_text.hpp"
#include "property_tests/report/numbers.hpp"

namespace attest {
namespace {

/// Of each doubtful verdict, this many cases are named.
constexpr std::int64_t max_lines = 3;

std::string failures_text(const BackendTally& tally) {
  if (tally.failure_kinds.empty()) return "";
  std::string text = "failures  " + tally.backend + ":";
  for (const auto& [kind, count] : tally.failure_kinds) {
    text += (text.back() == ':' ? " " : ", ") + std::to_string(count) + " by " + kind;
  }
  return text + "\n";
}

}  // namespace

void RunScreen::begins(const Backend& backend, std::int64_t cases) {
  blocks_ = known_lines_ = 0;
  lines_.clear();
  progress_.begin(std::string(backend.name()), cases);
}

void RunScreen::print(const std::string& text) {
  progress_.clear();
  results_.print(text);
}

void RunScreen::launches(const std::string& repro) {
  if (show_launches_) print("launch  " + printable(repro) + "\n");
}

void RunScreen::judged(const CaseResult& result, const BackendTally& so_far) {
  const Verdict verdict = result.judgement.verdict;
  if (!result.known.empty()) {
    if (++known_lines_ <= max_lines) {
      print("known     " + printable(result.known) + ": " + result.name + ", " +
            printable(failure_kind(result.judgement)) + "\n");
    }
  } else if (is_failure(verdict)) {
    if (++blocks_ <= in_full_) print("\n" + failure_text(result, results_) + "\n");
  } else if (verdict != Verdict::pass && ++lines_[verdict] <= max_lines) {
    print(result_line(result, results_));
  }
  progress_.advance(so_far.cases(), so_far.failed());
}

void RunScreen::ends(const BackendTally& tally) {
  progress_.end();
  if (blocks_ > in_full_) {
    print(tally.backend + ": " + counted(blocks_ - in_full_, "further failure") +
          " not shown; --record FILE keeps all of them\n");
  }
}

std::string run_summary_text(const RunSummary& summary, const Console& console) {
  std::string text =
      "\n" + tally_table(summary.tallies, console) + "\n" + coverage_lines(summary.tallies);
  for (const BackendTally& tally : summary.tallies) text += failures_text(tally);
  return text;
}

}  // namespace attest
