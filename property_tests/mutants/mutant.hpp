#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/backend.hpp"
#include "property_tests/mutants/handed_bugs.hpp"

namespace attest {

/// How a mutant is put in front of the oracles.
enum class MutantKind {
  kernel,    ///< a faulty backend, judged on generated cases
  metadata,  ///< a metadata fault in the calls of the scalar kernels
  step,      ///< a fault between two steps, the same
  graph,     ///< a launcher's fault, told by a relation between a replay and an eager launch
  relation,  ///< a faulty backend within its bounds, told by a relation
  rule,      ///< a rule and the smallest call that breaks it
};

/// One deliberate mistake.
struct Mutant {
  std::string name;  ///< of the backend; "metadata:<id>", "step:<id>", "rule:<id>"
  MutantKind kind = MutantKind::kernel;
  BugClass shows = BugClass::numeric;
  Site site = Site::kernel_math;
  std::string source;
  const Backend* backend = nullptr;  ///< of kernel, graph and relation mutants
  /// Not empty: attest's own test that shows it, since no case of a stream can. Not run here.
  std::string elsewhere;
  int batch = 0;  ///< of those written after the oracles were fixed (later_mutants.hpp); 0: of none

  bool later() const { return batch > 0; }
};

/// When a mutant was written; the last two are the batches of those after the oracles.
enum class Written { ever, before_the_oracles, after_the_oracles, first_batch, second_batch };
bool was_written(const Mutant& mutant, Written when);

/// All of them: every faulty backend of an engine that any CPU has, every metadata and step fault,
/// every fault around graphs, and the rules that stand for a public bug.
std::span<const Mutant> all_mutants();

/// Whether the name in a `stands` list means this mutant: its whole name, or a beginning that ends
/// where a part of it does.
bool means(std::string_view stand, const Mutant& mutant);

/// The names of a `stands` list.
std::vector<std::string_view> stands_of(const HandedBug& bug);

/// The site of a fault whose backend is "faulty-<id>...".
Site site_of_fault(std::string_view id);

/// Why the mutant computes what it should in every context of `keys` keys, so that it counts as
/// equivalent there; empty = it does not.
std::string_view equivalent_because(const Mutant& mutant, long keys);

/// A generic mutation of an attention kernel, and what stands for it.
struct GenericMutant {
  std::string_view id;    ///< "m07"
  std::string_view says;  ///< "the last segment dropped"
  std::string_view stands;
};
std::span<const GenericMutant> generic_mutants();

}  // namespace attest
