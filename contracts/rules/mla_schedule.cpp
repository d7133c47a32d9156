#include "contracts/rules/mla_schedule.hpp"

#include <string>

#include "contracts/work_lists.hpp"

namespace attest {
namespace {

void splits_are_positive(const MlaDecodeCall& call, const Truth&, Report& report) {
  const std::int64_t splits = call.num_kv_splits.value_or(1);
  if (splits < 1) report.add("num_kv_splits", std::to_string(splits), "1 or more, or absent");
}

void work_lists_are_not_judged(const MlaDecodeCall& call, const Truth&, Report& report) {
  if (!call.persistent && call.planned_for) {
    report.add("planned_for", "given",
               "absent, or work_meta_data among the arguments: a launch without it is not "
               "persistent, and reads no work list");
  }
  if (!call.persistent || gives_work_lists(call)) return;
  report.add("persistent", "true",
             "false, or the work lists and what they were planned for (a record's work_plan): what "
             "splits the keys is not judged without them");
}

constexpr Rule rules[] = {
    {.id = "num_kv_splits.is_positive",
     .says = "num_kv_splits is 1 or more, or absent",
     .why = "it sizes the partial results and the grid: 0 launches nothing and merges what nobody "
            "wrote, a negative size raises",
     .source = "ROCm/aiter aiter/mla.py: mla_decode_fwd, torch.empty(total_s, num_kv_splits, ...)",
     .severity = Severity::fault,
     .mla_decode = splits_are_positive},
    {.id = "persistent.is_off",
     .says = "a persistent launch comes with its work lists, and only a persistent one with a plan",
     .why = "a persistent kernel takes its split from work_indptr, work_info_set and the reduce_* "
            "lists: stale ones drop keys of a call that is right in every other argument, and a "
            "record without them cannot show it",
     .source = "ROCm/aiter aiter/mla.py: get_mla_metadata_v1; ROCm/aiter#4420",
     .severity = Severity::policy,
     .mla_decode = work_lists_are_not_judged},
};

}  // namespace

std::span<const Rule> mla_schedule_rules() { return rules; }

}  // namespace attest
