#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "contracts/problem.hpp"
#include "contracts/slot_map.hpp"

namespace attest {

/// `count` keys of one sequence at positions first, first + 1, ... (encoder: first, first - 1, ...
/// is never merged; encoder runs ascend from -count). Sequence `unknown_sequence`: slots that hold
/// no content of the Problem, `first` is then the slot itself.
struct KeyRun {
  std::int64_t sequence = 0;
  std::int64_t first = 0;
  std::int64_t count = 0;
  bool operator==(const KeyRun&) const = default;
};
inline constexpr std::int64_t unknown_sequence = -1;

/// What a row's output must be.
enum class RowExpectation {
  value,      ///< softmax-weighted values
  zero,       ///< zeros
  any,        ///< unspecified, but the row may be written
  untouched,  ///< bytes unchanged
};
std::string_view name(RowExpectation expectation);

/// One row of q: what it sees.
struct AttendedRow {
  std::vector<KeyRun>
      keys;  ///< sorted by (sequence, first), maximal runs; a key read twice stands twice
  RowExpectation expect = RowExpectation::value;
  /// Row of q in the meaning of the Problem: (request, token). -1: no token of the Problem.
  std::int64_t request = -1;
  std::int64_t token = -1;
  bool operator==(const AttendedRow&) const = default;

  std::int64_t visible() const;  ///< number of keys
};

/// The canonical meaning of a step: of a Problem (attended) or of a Call (read in signatures.hpp).
/// Row r is row r of q.
struct Attended {
  double scale = 1;
  double softcap = 0;  ///< 0 = off
  bool sinks = false;
  std::int64_t num_q_heads = 1;
  std::int64_t num_kv_heads = 1;  ///< q head h reads kv head h / (num_q_heads / num_kv_heads)
  std::vector<AttendedRow> rows;
  bool operator==(const Attended&) const = default;
};

/// Sorts and merges into the canonical form.
std::vector<KeyRun> canonical(std::vector<KeyRun> runs);

/// The meaning of a Problem. Rows of requests that are not live expect `any`.
/// \pre !problem_error(problem).
Attended attended(const Problem& problem);

/// First difference in words, or nothing when equal:
/// "row 5 (request 1, token 2): expected keys [0, 134) of sequence 1, got [0, 130) and [131, 134)".
/// Scalars are compared first, then rows the Problem gives a value, by their keys.
std::optional<std::string> difference(const Attended& expected, const Attended& got);

}  // namespace attest
