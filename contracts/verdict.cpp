#include "contracts/verdict.hpp"

#include <algorithm>
#include <array>

namespace attest {
namespace {

struct Row {
  Verdict verdict;
  std::string_view name;
  int exit_code;
  int badness;  ///< a batch exits with the code of the worst
  std::string_view meaning;
};

// The one table. crashed and hung share an exit code: both mean the process gave no answer.
constexpr std::array rows = {
    Row{Verdict::pass, "pass", 0, 0, "every applicable oracle passed"},
    Row{Verdict::mismatch, "mismatch", 1, 5, "an oracle failed on the kernel's output"},
    Row{Verdict::rejected, "rejected", 2, 4, "the metadata breaks a rule; the kernel was not run"},
    Row{Verdict::unsupported, "unsupported", 3, 2, "the backend does not claim this call"},
    Row{Verdict::unavailable, "unavailable", 4, 3, "the backend cannot run on this machine"},
    Row{Verdict::untrusted, "untrusted", 5, 1, "it agreed, but could not have failed"},
    Row{Verdict::crashed, "crashed", 6, 6, "the process that ran the kernel died"},
    Row{Verdict::hung, "hung", 6, 6, "no answer within the time limit"},
};

const Row& row_of(Verdict verdict) { return rows[static_cast<std::size_t>(verdict)]; }

}  // namespace

std::string_view name(Verdict verdict) { return row_of(verdict).name; }

std::optional<Verdict> verdict_from_name(std::string_view text) {
  for (const Row& row : rows) {
    if (text == row.name) return row.verdict;
  }
  return std::nullopt;
}

std::string_view meaning(Verdict verdict) { return row_of(verdict).meaning; }

int exit_code(Verdict verdict) { return row_of(verdict).exit_code; }

int exit_code(std::span<const Verdict> verdicts) {
  if (verdicts.empty()) return exit_usage;
  const Verdict worst =
      *std::max_element(verdicts.begin(), verdicts.end(),
                        [](Verdict a, Verdict b) { return row_of(a).badness < row_of(b).badness; });
  return exit_code(worst);
}

}  // namespace attest
