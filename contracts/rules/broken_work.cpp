#include "contracts/rules/broken_parts.hpp"
#include "contracts/work_lists.hpp"

namespace attest {
namespace {

// mla_verify(): request 0 has keys [0, 20) in two works, [0, 16) and [16, 20), request 1 has keys
// [20, 27) in one.
std::int64_t& word(IntArray& info, std::size_t work, std::size_t index) {
  return info.values[work * 8 + index];
}

void break_lists(BrokenCalls& calls) {
  calls.persistent("work_lists.can_be_read", "the map of the merged rows is missing", mla_verify(),
                   [](MlaDecodeCall& c) { c.reduce_final_map.reset(); });
  calls.persistent(
      "work_lists.can_be_read", "works of seven words", mla_verify(), [](MlaDecodeCall& c) {
        c.work_info_set = int_matrix(Dtype::int32, 3, 7, std::vector<std::int64_t>(21));
      });
  calls.persistent("work_lists.are_int32", "int64 works", mla_verify(),
                   [](MlaDecodeCall& c) { c.work_info_set->meta.dtype = Dtype::int64; });
  calls.persistent("work_lists.offsets_cut_their_lists", "a unit's works begin past the list",
                   mla_verify(), [](MlaDecodeCall& c) { c.work_indptr->values.back() = 99; });
  calls.persistent("work_lists.offsets_cut_their_lists", "the first work is nobody's", mla_verify(),
                   [](MlaDecodeCall& c) { c.work_indptr->values.front() = 1; });
}

void break_plans(BrokenCalls& calls) {
  calls.persistent("persistent.is_off", "lists are planned, the launch has no work_meta_data",
                   mla_verify(), [](MlaDecodeCall& c) { c.persistent = false; });
}

void break_works(BrokenCalls& calls) {
  calls.persistent(
      "work_info.lies_in_its_request", "request 1's work has request 0's rows", mla_verify(),
      [](MlaDecodeCall& c) { word(*c.work_info_set, 2, 2) = 0, word(*c.work_info_set, 2, 3) = 2; });
  calls.persistent("work_info.lies_in_its_request", "request 0's work reads request 1's keys",
                   mla_verify(), [](MlaDecodeCall& c) { word(*c.work_info_set, 1, 5) = 22; });
  calls.persistent("work_info.covers_every_key_once", "verify planned for one row a request",
                   mla_verify(), [](MlaDecodeCall& c) { word(*c.work_info_set, 2, 3) = 3; });
  calls.persistent("work_info.covers_every_key_once", "lists of a shorter batch", mla_verify(),
                   [](MlaDecodeCall& c) { word(*c.work_info_set, 2, 5) = 25; });
  calls.persistent("work_info.covers_every_key_once", "one key in two works", mla_verify(),
                   [](MlaDecodeCall& c) { word(*c.work_info_set, 1, 4) = 15; });
  calls.persistent("work_info.keys_after_reach_the_end", "a work counts one key behind it too few",
                   mla_verify(), [](MlaDecodeCall& c) { word(*c.work_info_set, 0, 6) = 3; });
}

void break_merges(BrokenCalls& calls) {
  calls.persistent("work_info.partials_are_apart", "two works write one partial result",
                   mla_verify(), [](MlaDecodeCall& c) { word(*c.work_info_set, 1, 1) = 1; });
  calls.persistent("work_info.partials_are_apart", "a partial result past the buffer", mla_verify(),
                   [](MlaDecodeCall& c) { word(*c.work_info_set, 1, 1) = 4; });
  calls.persistent("reduce.merges_every_partial_once", "one partial result merged twice",
                   mla_verify(), [](MlaDecodeCall& c) { c.reduce_partial_map->values[1] = 0; });
  calls.persistent("reduce.merges_every_partial_once", "nothing is merged", mla_verify(),
                   [](MlaDecodeCall& c) { c.reduce_indptr->values = {0, 0, 0}; });
  calls.persistent(
      "reduce.merges_every_partial_once", "two works write the rows themselves", mla_verify(),
      [](MlaDecodeCall& c) { word(*c.work_info_set, 0, 1) = word(*c.work_info_set, 1, 1) = -1; });
  calls.persistent("work_plan.is_the_launchs", "planned for one row", mla_verify(),
                   [](MlaDecodeCall& c) { c.planned_for->max_seqlen_qo = 1; });
  calls.persistent("work_plan.is_the_launchs", "the types are not passed", mla_verify(),
                   [](MlaDecodeCall& c) { c.planned_for->dtype_kv.reset(); });
  calls.persistent("work_plan.is_the_launchs", "more works than the plan has splits", mla_verify(),
                   [](MlaDecodeCall& c) { c.planned_for->max_splits = 1; });
  calls.persistent("work_plan.is_the_launchs", "sized for another mode", mla_verify(),
                   [](MlaDecodeCall& c) { c.sized_for->fast_mode = false; });
}

}  // namespace

void break_work_lists(BrokenCalls& calls) {
  break_lists(calls);
  break_works(calls);
  break_merges(calls);
  break_plans(calls);
}

}  // namespace attest
