#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "contracts/call.hpp"

namespace attest {

/// The lists that a persistent launch runs by, under the kernel's own names.
inline constexpr std::array<std::string_view, 5> work_list_names = {
    "work_indptr", "work_info_set", "reduce_indptr", "reduce_final_map", "reduce_partial_map"};
constexpr bool is_work_list(std::string_view field) {
  return std::ranges::find(work_list_names, field) != work_list_names.end();
}
/// Each with its name, in the order of the names.
std::array<std::pair<std::string_view, const std::optional<IntArray>&>, work_list_names.size()>
named_work_lists(const MlaDecodeCall& call);

/// One entry of work_info_set: some query rows of a request against some of its keys. Source:
/// ROCm/aiter csrc/kernels/mla/metadata/v1_comm.cuh, aiter/ops/attention.py get_mla_metadata_v1.
struct WorkItem {
  std::int64_t request = 0;   ///< batch index
  std::int64_t partial = -1;  ///< first row of its partial result; -1: it writes the output itself
  std::int64_t first_row = 0, last_row = 0;  ///< rows [first, last) of q
  std::int64_t first_key = 0, last_key = 0;  ///< entries [first, last) of kv_indices
  std::int64_t keys_after = 0;               ///< tokens of the request behind last_key
  std::size_t index = 0;                     ///< row of work_info_set

  bool operator==(const WorkItem&) const = default;
};

/// One tile of output rows and the partial results that make it up.
struct MergeItem {
  std::int64_t first_row = 0, last_row = 0;
  std::vector<std::int64_t> partials;  ///< their first rows
  std::size_t index = 0;               ///< entry of reduce_indptr

  bool operator==(const MergeItem&) const = default;
};

/// What a persistent MLA kernel does, read from its lists as its pointer arithmetic finds them:
/// entries outside the arrays are left out.
struct WorkLists {
  std::vector<WorkItem> works;  ///< in the order of the compute units
  std::vector<MergeItem> merges;
};

/// Whether any of the five lists was given.
bool gives_work_lists(const MlaDecodeCall& call);
/// Why the five lists cannot be read: "work_info_set has the shape (3, 7), not (works, 8)". Nothing
/// when they can. \pre all sizes are sane (tensor.sizes_are_sane)
std::optional<std::string> work_lists_error(const MlaDecodeCall& call);

/// The five lists of a call that has them all.
struct WorkArrays {
  const IntArray& work_indptr;
  const IntArray& work_info_set;
  const IntArray& reduce_indptr;
  const IntArray& reduce_final_map;
  const IntArray& reduce_partial_map;
};
std::optional<WorkArrays> work_arrays(const MlaDecodeCall& call);

/// What the lists say; nothing where work_lists_error has something to say.
WorkLists work_lists(const MlaDecodeCall& call);

/// The call with lists for `parts` compute units, of one row tile a request: what
/// get_mla_metadata_v1 makes up to the placing of the cuts. \pre lengths and offsets are right,
/// page_size 1, parts >= 1
MlaDecodeCall with_work_lists(MlaDecodeCall call, std::int64_t parts);

}  // namespace attest
