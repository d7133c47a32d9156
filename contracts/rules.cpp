#include "contracts/rules.hpp"

#include <variant>

#include "contracts/rules/array_shape.hpp"
#include "contracts/rules/block_table.hpp"
#include "contracts/rules/cache_layout.hpp"
#include "contracts/rules/call_shape.hpp"
#include "contracts/rules/cpu_cache.hpp"
#include "contracts/rules/cpu_dtypes.hpp"
#include "contracts/rules/cpu_features.hpp"
#include "contracts/rules/cpu_layout.hpp"
#include "contracts/rules/cpu_offsets.hpp"
#include "contracts/rules/cpu_scalars.hpp"
#include "contracts/rules/cpu_shape.hpp"
#include "contracts/rules/custom_mask.hpp"
#include "contracts/rules/dense_arrays.hpp"
#include "contracts/rules/descales.hpp"
#include "contracts/rules/dtypes.hpp"
#include "contracts/rules/extend_rows.hpp"
#include "contracts/rules/heads.hpp"
#include "contracts/rules/kv_indptr.hpp"
#include "contracts/rules/launch.hpp"
#include "contracts/rules/live_requests.hpp"
#include "contracts/rules/loc.hpp"
#include "contracts/rules/mla_schedule.hpp"
#include "contracts/rules/new_token_slots.hpp"
#include "contracts/rules/padding.hpp"
#include "contracts/rules/partitions.hpp"
#include "contracts/rules/prefill.hpp"
#include "contracts/rules/query_offsets.hpp"
#include "contracts/rules/req_to_token.hpp"
#include "contracts/rules/scale_and_features.hpp"
#include "contracts/rules/seq_lens.hpp"
#include "contracts/rules/seqused_k.hpp"
#include "contracts/rules/strides_and_layout.hpp"
#include "contracts/rules/tensor_memory.hpp"
#include "contracts/rules/tree_mask.hpp"
#include "contracts/rules/visibility.hpp"
#include "contracts/rules/work_lists.hpp"

namespace attest {
namespace {

/// One field's rules. Those of a shape group run first: what they reject is judged by them alone,
/// so that no later rule reads past an array.
struct Group {
  std::span<const Rule> (*rules)();
  bool shape = false;
};

constexpr Group groups[] = {
    {array_shape_rules, /*shape=*/true},
    // The GPU kernels, unified, mla_decode, batch_prefill, paged_ragged and legacy_extend, and
    // vllm_cpu, which is called like unified.
    {call_shape_rules, /*shape=*/true},
    {query_offsets_rules},
    {seqused_k_rules},
    {block_table_rules},
    {kv_indptr_rules},
    {heads_rules},
    {strides_and_layout_rules},
    {cache_layout_rules},
    {dtypes_rules},
    {scale_and_features_rules},
    {visibility_rules},
    {descales_rules},
    {launch_rules},
    {padding_rules},
    {prefill_rules},
    {partitions_rules},
    {custom_mask_rules},
    {cpu_cache_rules},
    // SGLang's CPU kernels: extend and decode.
    {cpu_shape_rules, /*shape=*/true},
    {seq_lens_rules},
    {extend_rows_rules},
    {req_to_token_rules},
    {loc_rules},
    {tree_mask_rules},
    {cpu_scalars_rules},
    {cpu_features_rules},
    {cpu_dtypes_rules},
    {cpu_layout_rules},
    {cpu_offsets_rules},
    // All kernels, or some of both kinds.
    {tensor_memory_rules},
    {dense_arrays_rules},
    {mla_schedule_rules},
    {work_list_rules},
    {new_token_slots_rules},
    {live_requests_rules},
};

void apply(const Rule& rule, const Call& call, const Truth& truth, Report& report) {
  if (!rule.applies_to(signature_of(call))) return;
  report.begin(rule.id, rule.severity);
  if (const auto* unified = std::get_if<UnifiedCall>(&call)) {
    rule.unified(*unified, truth, report);
  } else if (const auto* extend = std::get_if<ExtendCall>(&call)) {
    rule.extend(*extend, truth, report);
  } else if (const auto* decode = std::get_if<DecodeCall>(&call)) {
    rule.decode(*decode, truth, report);
  } else if (const auto* mla_decode = std::get_if<MlaDecodeCall>(&call)) {
    rule.mla_decode(*mla_decode, truth, report);
  } else if (const auto* batch_prefill = std::get_if<BatchPrefillCall>(&call)) {
    rule.batch_prefill(*batch_prefill, truth, report);
  } else if (const auto* paged_ragged = std::get_if<PagedRaggedCall>(&call)) {
    rule.paged_ragged(*paged_ragged, truth, report);
  } else if (const auto* legacy_extend = std::get_if<LegacyExtendCall>(&call)) {
    rule.legacy_extend(*legacy_extend, truth, report);
  } else if (const auto* vllm_cpu = std::get_if<VllmCpuCall>(&call)) {
    rule.vllm_cpu(*vllm_cpu, truth, report);
  }
}

void apply_groups(bool shape, const Call& call, const Truth& truth, Report& report) {
  for (const Group& group : groups) {
    if (group.shape != shape) continue;
    for (const Rule& rule : group.rules()) apply(rule, call, truth, report);
    if (shape && report.rejects()) return;
  }
}

}  // namespace

std::span<const Rule> all_rules() {
  static const std::vector<Rule> all = [] {
    std::vector<Rule> list;
    for (const Group& group : groups) {
      list.insert(list.end(), group.rules().begin(), group.rules().end());
    }
    return list;
  }();
  return all;
}

const Rule* find_rule(std::string_view id) {
  for (const Rule& rule : all_rules()) {
    if (rule.id == id) return &rule;
  }
  return nullptr;
}

Report check(const Call& call, const Truth& truth) {
  Report report;
  apply_groups(/*shape=*/true, call, truth, report);
  if (!report.rejects()) apply_groups(/*shape=*/false, call, truth, report);
  return report;
}

}  // namespace attest
