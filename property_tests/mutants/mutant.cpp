#include "property_tests/mutants/mutant.hpp"

#include <algorithm>
#include <memory>
#include <set>

#include "backends/faulty/amx_faults.hpp"
#include "backends/faulty/faults.hpp"
#include "backends/hip/graph_faults.hpp"
#include "backends/hip/planted_faults.hpp"
#include "backends/registry.hpp"
#include "property_tests/metadata_faults.hpp"
#include "property_tests/mutants/later_mutants.hpp"
#include "property_tests/step_faults.hpp"

namespace attest {
namespace {

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

struct Elsewhere {
  std::string_view id;
  std::string_view test;
};

// What no case of a stream can show: the call would have to be wrong in a way the rules refuse, or
// hold NaN where a right call reads.
constexpr Elsewhere elsewhere[] = {
    {"mask_cut_at_the_row_block", "AmxFaults.ShowOnTheCallThatTheirRuleRejects"},
    {"hidden_row_is_nan", "AmxFaults.ShowOnTheCallThatTheirRuleRejects"},
    {"rows_past_the_batch_skipped", "AmxFaults.ShowOnTheCallThatTheirRuleRejects"},
    {"left_over_heads_skipped", "AmxFaults.ShowOnTheCallThatTheirRuleRejects"},
    {"scratch_of_the_last_item", "Nan.InOneRequestsValuesStaysInItsRows"},
    {"nan_key_dropped", "Nan.InAKeyShowsInEveryRowThatSeesIt"},
    {"rows_without_keys_not_written", "PlantedFaults.DifferFromTheKernelWithoutThem"},
    {"padding_rows_written", "PlantedFaults.DifferFromTheKernelWithoutThem"},
};

/// An engine that any CPU has; AMX by emulation, so that every machine runs the same list.
bool runs_anywhere(std::string_view name) {
  return name.ends_with("@cpu") || name.ends_with("@host") || name.ends_with("@patch");
}

std::string source_of(std::string_view name) {
  for (const KernelFault& fault : all_kernel_faults()) {
    if (name.starts_with("faulty-" + std::string(fault.id) + ".")) return std::string(fault.source);
  }
  for (const AmxFault& fault : all_amx_faults()) {
    if (name.starts_with("faulty-" + std::string(fault.id) + ".")) return std::string(fault.source);
  }
  for (const hip::PlantedFaultRow& row : hip::all_planted_faults()) {
    if (name.starts_with("faulty-hip_" + std::string(row.id) + ".")) return std::string(row.source);
  }
  for (const hip::GraphFaultRow& row : hip::all_graph_faults()) {
    if (name.starts_with("faulty-graph_" + std::string(row.id) + "."))
      return std::string(row.source);
  }
  return "modelled: an offset that loses its upper bits";
}

Mutant of_backend(const Backend& backend, MutantKind kind) {
  Mutant mutant{.name = std::string(backend.name()),
                .kind = kind,
                .site = site_of_fault(backend.name()),
                .source = source_of(backend.name()),
                .backend = &backend};
  if (has(mutant.name, ".splits_from_") || has(mutant.name, "-splits_from_")) {
    mutant.kind = MutantKind::relation;
  }
  if (mutant.kind != MutantKind::kernel) mutant.shows = BugClass::relation;
  for (const Elsewhere& one : elsewhere) {
    if (has(mutant.name, one.id)) mutant.elsewhere = one.test;
  }
  return mutant;
}

/// Metadata faults whose numbers the scalar kernel gets right all the same.
BugClass class_of_metadata(std::string_view id) {
  if (id == "kv_heads_expanded" || id == "no_split_kv") return BugClass::cost;
  for (const char* const silent :
       {"seqused_k_int32", "req_to_token_int32", "window_beside_an_encoder",
        "mla_last_page_len_of_sequence", "mla_kv_indptr_int64"}) {
    if (id == silent) return BugClass::rule_only;
  }
  return BugClass::numeric;
}

void add_backends(std::vector<Mutant>& all) {
  std::set<std::string_view> known;
  for (const Backend* backend : all_backends()) {
    if (!is_deliberate_fault(*backend) || !runs_anywhere(backend->name())) continue;
    known.insert(backend->name());
    all.push_back(of_backend(*backend, MutantKind::kernel));
  }
  static std::vector<std::unique_ptr<Backend>> kept;
  for (const hip::PlantedFaultRow& row : hip::all_planted_faults()) {
    if (row.generated) continue;
    kept.push_back(hip::faulty_hip_backend(row));
    all.push_back(of_backend(*kept.back(), MutantKind::kernel));
  }
  for (const hip::GraphFaultRow& row : hip::all_graph_faults()) {
    kept.push_back(hip::graph_fault_backend(row));
    all.push_back(of_backend(*kept.back(), MutantKind::graph));
  }
}

void add_metadata(std::vector<Mutant>& all) {
  for (const MetadataFault& fault : all_metadata_faults()) {
    all.push_back({.name = "metadata:" + std::string(fault.id),
                   .kind = MutantKind::metadata,
                   .shows = class_of_metadata(fault.id),
                   .site = Site::metadata,
                   .source = std::string(fault.source)});
  }
  for (const StepFault& fault : all_step_faults()) {
    all.push_back({.name = "step:" + std::string(fault.id),
                   .kind = MutantKind::step,
                   .shows = BugClass::trace,
                   .site = Site::graph,
                   .source = std::string(fault.source)});
  }
}

/// The rules that stand for a bug.
void add_rules(std::vector<Mutant>& all) {
  std::set<std::string_view> seen;
  static const std::vector<HandedBug> bugs = all_handed_bugs();
  for (const HandedBug& bug : bugs) {
    for (const std::string_view stand : stands_of(bug)) {
      if (!stand.starts_with("rule:") || !seen.insert(stand).second) continue;
      all.push_back({.name = std::string(stand),
                     .kind = MutantKind::rule,
                     .shows = BugClass::rule_only,
                     .site = bug.site,
                     .source = std::string(bug.source)});
    }
  }
}

}  // namespace

std::span<const Mutant> all_mutants() {
  static const std::vector<Mutant> list = [] {
    std::vector<Mutant> all;
    add_backends(all);
    add_metadata(all);
    add_rules(all);
    for (Mutant& mutant : all) {
      const LaterMutant* const row = later_mutant(mutant.name);
      mutant.batch = row != nullptr ? row->batch : 0;
    }
    return all;
  }();
  return list;
}

bool was_written(const Mutant& mutant, Written when) {
  switch (when) {
    case Written::ever:
      return true;
    case Written::before_the_oracles:
      return !mutant.later();
    case Written::after_the_oracles:
      return mutant.later();
    case Written::first_batch:
      return mutant.batch == 1;
    case Written::second_batch:
      return mutant.batch == 2;
  }
  return false;
}

bool means(std::string_view stand, const Mutant& mutant) {
  if (!mutant.name.starts_with(stand)) return false;
  return mutant.name.size() == stand.size() || mutant.name[stand.size()] == '.';
}

std::vector<std::string_view> stands_of(const HandedBug& bug) {
  if (bug.stands.empty()) return {};
  return split_at_commas(bug.stands);
}

std::string_view equivalent_because(const Mutant& mutant, long keys) {
  if (has(mutant.name, "sum_of_rounded_p")) {
    return "a rounding within every bound, which must not be caught";
  }
  if (has(mutant.name, "head_dim_tail_dropped.extend")) {
    return "this signature takes no head_dim that 32 does not divide";
  }
  if (has(mutant.name, "split_remainder_lost.decode") && keys <= 512) {
    return "eight splits of one tile of 64 keys or less leave none over";
  }
  if (has(mutant.name, "keys_past_16k_ignored") && keys <= 256 * 64) {
    return "no context of this length has a key past 16,384";
  }
  return "";
}

}  // namespace attest
