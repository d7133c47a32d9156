#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace attest {

/// What the judge says about one case. The one table of words and exit codes is in verdict.cpp.
enum class Verdict {
  pass,         ///< every applicable oracle passed
  mismatch,     ///< an oracle failed on the kernel's output
  rejected,     ///< a rule of severity wrong or fault fired, so the kernel was not launched
  unsupported,  ///< the backend does not claim this call, with its reason
  unavailable,  ///< the backend cannot run on this machine, with its reason
  untrusted,    ///< it agreed, but could not have failed
  crashed,      ///< the process that ran the kernel died, or the device was lost
  hung,         ///< no answer within the case's time limit
};

inline constexpr int exit_expectation = 7;  ///< a verdict differs from the fixture's expectation
inline constexpr int exit_usage = 64;
inline constexpr int exit_bad_input = 65;
inline constexpr int exit_internal = 70;
inline constexpr int exit_io = 74;
inline constexpr int exit_interrupted = 130;

std::string_view name(Verdict verdict);
std::optional<Verdict> verdict_from_name(std::string_view text);

/// One sentence a person reads in the legend of a report.
std::string_view meaning(Verdict verdict);

/// 0 pass, 1 mismatch, 2 rejected, 3 unsupported, 4 unavailable, 5 untrusted, 6 crashed or hung.
int exit_code(Verdict verdict);

/// Exit code of a batch: the worst verdict's, in the order 6 > 1 > 2 > 4 > 3 > 5 > 0.
/// An empty batch is a usage error (64): nothing ran, so nothing passed.
int exit_code(std::span<const Verdict> verdicts);

}  // namespace attest
