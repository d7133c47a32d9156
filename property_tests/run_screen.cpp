#include "property_tests/run_screen.hpp"

#include "contracts/printable.hpp"
#include "property_tests/report/failure_text.hpp"
#include "property_tests/report/numbers.hpp"

namespace attest {
namespace {

/// Of each doubtful verdict and each known failure, this many cases are named.
constexpr std::int64_t max_lines = 3;

std::string failures_text(const BackendTally& tally) {
  if (tally.failure_kinds.empty()) return "";
  std::string text = "failures  " + tally.backend + ":";
  for (const auto& [kind, count] : tally.failure_kinds) {
    text += (text.back() == ':' ? " " : ", ") + std::to_string(count) + " by " + kind;
  }
  return text + "\n";
}

/// How many of the table's cases are no new ones.
std::string found_text(const std::vector<BackendTally>& tallies) {
  std::int64_t found = 0, failed = 0;
  for (const BackendTally& tally : tallies) {
    found += tally.found;
    failed += tally.found_failed;
  }
  if (found == 0) return "";
  return "found     " + counted(found, "case") + " of the table " + (found == 1 ? "is" : "are") +
         " saved by earlier runs, " + std::to_string(failed) + " of them still failing\n";
}

}  // namespace

void RunScreen::begins(const Backend& backend, std::int64_t cases) {
  blocks_ = 0;
  known_.clear();
  doubtful_.clear();
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
  if (result.found) {
    print(found_line(result));
  } else if (!result.known.empty()) {
    if (++known_[known_in_words(result)] <= max_lines) {
      print("known     " + printable(known_in_words(result)) + ": " + result.name + ", " +
            printable(failure_kind(result.judgement)) + "\n");
    }
  } else if (is_failure(verdict)) {
    if (++blocks_ <= in_full_) print("\n" + failure_text(result, results_) + "\n");
  } else if (verdict != Verdict::pass && ++doubtful_[verdict] <= max_lines) {
    print(result_line(result, results_));
  }
  progress_.advance(so_far.cases(), so_far.failed());
}

void RunScreen::ends(const BackendTally& tally) {
  progress_.end();
  for (const auto& [entry, count] : known_) {
    if (count <= max_lines) continue;
    print("known     " + printable(entry) + ": and " + std::to_string(count - max_lines) +
          " more\n");
  }
  for (const auto& [verdict, count] : doubtful_) {
    if (count <= max_lines) continue;
    print(std::string(name(verdict)) + "  " + tally.backend + "  and " +
          std::to_string(count - max_lines) + " more\n");
  }
  if (blocks_ > in_full_) {
    print(tally.backend + ": " + counted(blocks_ - in_full_, "further failure") +
          " not shown; --record FILE keeps all of them\n");
  }
}

std::string run_summary_text(const RunSummary& summary, const Console& console) {
  std::string text =
      "\n" + tally_table(summary.tallies, console) + "\n" + coverage_lines(summary.tallies);
  for (const BackendTally& tally : summary.tallies) text += failures_text(tally);
  return text + found_text(summary.tallies);
}

}  // namespace attest
