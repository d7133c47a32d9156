#include <optional>
#include <utility>
#include <vector>

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

/// The lists that say what is merged, and the first tile that has parts.
struct Merging {
  std::vector<std::int64_t> ends, parts;
  std::size_t tile = 0;
};
std::optional<Merging> merging_of(const MlaDecodeCall& call) {
  const std::optional<WorkArrays> arrays = work_arrays(call);
  if (!arrays) return std::nullopt;
  Merging merging{arrays->reduce_indptr.values, arrays->reduce_partial_map.values};
  const std::vector<std::int64_t>& ends = merging.ends;
  for (std::size_t t = 0; t + 1 < ends.size(); ++t) {
    merging.tile = t;
    if (ends[t + 1] > ends[t]) return merging;
  }
  return std::nullopt;
}

void set(MlaDecodeCall& call, Merging merging) {
  call.reduce_indptr = int_array(Dtype::int32, std::move(merging.ends));
  call.reduce_partial_map = int_array(Dtype::int32, std::move(merging.parts));
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
  MlaDecodeCall launch = with_work_lists(*mla, units);
  std::optional<Merging> merging = merging_of(launch);
  if (!merging) return false;
  // The parts after it move up by one place.
  merging->parts.erase(merging->parts.begin() + merging->ends[merging->tile + 1] - 1);
  merging->parts.push_back(0);
  for (std::size_t t = merging->tile + 1; t < merging->ends.size(); ++t) --merging->ends[t];
  set(launch, *std::move(merging));
  *mla = std::move(launch);
  return true;
}

bool mla_works_merge_an_unwritten_part(const Problem&, const SlotMap&, Call& call) {
  auto* const mla = mla_of(call);
  if (mla == nullptr) return false;
  MlaDecodeCall launch = with_work_lists(*mla, units);
  std::optional<Merging> merging = merging_of(launch);
  if (!merging) return false;
  const auto written = static_cast<std::int64_t>(merging->parts.size()) * mla->max_seqlen_q;
  merging->parts.insert(merging->parts.begin() + merging->ends[merging->tile + 1], written);
  for (std::size_t t = merging->tile + 1; t < merging->ends.size(); ++t) ++merging->ends[t];
  set(launch, *std::move(merging));
  *mla = std::move(launch);
  return true;
}

}  // namespace attest
