#pragma once

#include <span>
#include <string_view>

namespace attest {

/// A mutant that was written after the oracles and the hypotheses were fixed, by somebody who had
/// read neither: what they are worth on mistakes they were not made for. Whoever mends an oracle or
/// a hypothesis because one of these got away makes it an ordinary mutant from then on; the first,
/// blind record is in docs/campaigns.md.
struct LaterMutant {
  std::string_view name;  ///< the whole name of a metadata mutant, a backend's up to its first dot
  /// What a right diagnosis must say, written down before the hypotheses were read; empty: the
  /// mistake is arithmetic.
  std::string_view must_say;
  /// 1: of the first batch; 2: of the second one, by somebody else who had read no more, and no
  /// result either.
  int batch = 1;
};

/// Both batches.
std::span<const LaterMutant> later_mutants();
/// The second one.
std::span<const LaterMutant> second_later_mutants();
/// The row that stands for the mutant of that name; nullptr where there is none.
const LaterMutant* later_mutant(std::string_view name);

}  // namespace attest
