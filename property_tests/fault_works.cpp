#include <utility>

#include "contracts/work_lists.hpp"
#include "property_tests/fault_edits.hpp"

// Faults in the work lists of a persistent MLA launch, whose other arguments are right.

namespace attest {
namespace {

constexpr std::int64_t units = 6;

MlaDecodeCall* mla_of(Call& call) {
  auto* const mla = std::get_if<MlaDecodeCall>(&call);
  return mla != nullptr && mla->page_size == 1 ? mla : nullptr;
}

/// Gives `call` the lists that were made for `other`.
bool launch_with_lists_of(MlaDecodeCall other, MlaDecodeCall& call) {
  const MlaDecodeCall planned = with_work_lists(std::move(other), units);
  const MlaDecodeCall right = with_work_lists(call, units);
  call = right;
  call.work_indptr = planned.work_indptr;
  call.work_info_set = planned.work_info_set;
  call.reduce_indptr = planned.reduce_indptr;
  call.reduce_final_map = planned.reduce_final_map;
  call.reduce_partial_map = planned.reduce_partial_map;
  return !(call == right);
}

/// The first tile that is merged from parts, or nothing.
std::optional<std::size_t> first_split_tile(const MlaDecodeCall& call) {
  const std::vector<std::int64_t>& ends = call.reduce_indptr->values;
  for (std::size_t t = 0; t + 1 < ends.size(); ++t) {
    if (ends[t + 1] > ends[t]) return t;
  }
  return std::nullopt;
}

}  // namespace

bool mla_works_of_one_row(const Problem&, const SlotMap&, Call& call) {
  auto* const mla = mla_of(call);
  if (mla == nullptr || mla->max_seqlen_q < 2) return false;
  MlaDecodeCall other = *mla;
  other.max_seqlen_q = 1;
  return launch_with_lists_of(std::move(other), *mla);
}

bool mla_works_of_one_row_less(const Problem&, const SlotMap&, Call& call) {
  auto* const mla = mla_of(call);
  if (mla == nullptr || mla->max_seqlen_q < 3) return false;
  MlaDecodeCall other = *mla;
  --other.max_seqlen_q;
  return launch_with_lists_of(std::move(other), *mla);
}

bool mla_works_of_the_step_before(const Problem& problem, const SlotMap&, Call& call) {
  auto* const mla = mla_of(call);
  if (mla == nullptr) return false;
  MlaDecodeCall other = *mla;
  std::vector<std::int64_t>& ends = other.kv_indptr.values;
  std::int64_t fewer = 0;
  for (std::size_t i = 0; i < problem.requests.size(); ++i) {
    fewer += problem.requests[i].new_tokens;
    ends[i + 1] -= fewer;
  }
  return launch_with_lists_of(std::move(other), *mla);
}

bool mla_works_last_part_not_merged(const Problem&, const SlotMap&, Call& call) {
  auto* const mla = mla_of(call);
  if (mla == nullptr) return false;
  *mla = with_work_lists(*mla, units);
  const auto tile = first_split_tile(*mla);
  if (!tile) return false;
  // The parts after it move up by one place.
  std::vector<std::int64_t>& ends = mla->reduce_indptr->values;
  std::vector<std::int64_t>& parts = mla->reduce_partial_map->values;
  parts.erase(parts.begin() + ends[*tile + 1] - 1);
  parts.push_back(0);
  for (std::size_t t = *tile + 1; t < ends.size(); ++t) --ends[t];
  return true;
}

bool mla_works_merge_an_unwritten_part(const Problem&, const SlotMap&, Call& call) {
  auto* const mla = mla_of(call);
  if (mla == nullptr) return false;
  *mla = with_work_lists(*mla, units);
  const auto tile = first_split_tile(*mla);
  if (!tile) return false;
  std::vector<std::int64_t>& ends = mla->reduce_indptr->values;
  std::vector<std::int64_t>& parts = mla->reduce_partial_map->values;
  const auto written = static_cast<std::int64_t>(parts.size()) * mla->max_seqlen_q;
  parts.insert(parts.begin() + ends[*tile + 1], written);
  mla->reduce_partial_map = int_array(Dtype::int32, std::move(parts));
  for (std::size_t t = *tile + 1; t < ends.size(); ++t) ++ends[t];
  return true;
}

}  // namespace attest
