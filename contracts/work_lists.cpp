#include "contracts/work_lists.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

namespace attest {
namespace {

constexpr std::size_t words_per_work = 8;
constexpr std::int64_t granularity = 16;  ///< keys; AITER's kv_granularity

struct ListShape {
  std::size_t rank;
  std::int64_t columns;  ///< of rank 2
};
/// In the order of the names.
constexpr std::array<ListShape, work_list_names.size()> shapes = {
    {{1, 0}, {2, 8}, {1, 0}, {2, 2}, {1, 0}}};

std::optional<std::string> list_error(const std::string& name, const std::optional<IntArray>& array,
                                      const ListShape& shape) {
  if (!array) return name + " is absent";
  if (!array->recorded) return "the values of " + name + " were not recorded";
  const std::size_t rank = array->meta.shape.size();
  if (rank != shape.rank) {
    return name + " has " + std::to_string(rank) + " dimensions, not " + std::to_string(shape.rank);
  }
  if (rank == 2 && array->size(1) != shape.columns) {
    return name + " has " + std::to_string(array->size(1)) + " columns, not " +
           std::to_string(shape.columns);
  }
  if (static_cast<std::int64_t>(array->values.size()) != array->numel()) {
    return name + " has " + std::to_string(array->values.size()) + " values for " +
           std::to_string(array->numel()) + " entries";
  }
  return std::nullopt;
}

/// Far enough below 2^63 to add and subtract; no real size comes near.
std::int64_t bounded(std::int64_t value) {
  constexpr std::int64_t largest = std::int64_t{1} << 40;
  return std::clamp(value, -largest, largest);
}

WorkItem work_at(const std::vector<std::int64_t>& info, std::size_t index) {
  const auto word = [&](std::size_t i) { return bounded(info[index * words_per_work + i]); };
  return {.request = word(0),
          .partial = word(1),
          .first_row = word(2),
          .last_row = word(3),
          .first_key = word(4),
          .last_key = word(5),
          .keys_after = word(6),
          .index = index};
}

/// Calls f(i, entry) for every entry of every range that `offsets` cuts [0, count) into. Offsets
/// that go back repeat entries: at most once more each, however hostile they are.
template <class F>
void for_each_range(const std::vector<std::int64_t>& offsets, std::int64_t count, F f) {
  std::int64_t done = 0;
  for (std::size_t i = 0; i + 1 < offsets.size(); ++i) {
    const std::int64_t first = std::clamp<std::int64_t>(offsets[i], 0, count);
    const std::int64_t last = std::clamp<std::int64_t>(offsets[i + 1], first, count);
    for (std::int64_t entry = first; entry < last; ++entry) {
      if (++done > 2 * count) return;
      f(i, static_cast<std::size_t>(entry));
    }
  }
}

/// The cuts of one request's keys: whole steps of `share`, the last one at least `rows` long.
std::vector<std::int64_t> cuts_of(std::int64_t first, std::int64_t last, std::int64_t share,
                                  std::int64_t rows) {
  std::vector<std::int64_t> cuts{first};
  for (std::int64_t at = first + share; last - at >= std::max<std::int64_t>(rows, 1); at += share) {
    cuts.push_back(at);
  }
  cuts.push_back(last);
  return cuts;
}

/// The five lists while they are made.
struct Building {
  std::vector<std::int64_t> info, reduce_indptr{0}, final_map, partial_map;
  std::int64_t partial_rows = 0;

  void add(std::int64_t request, std::int64_t rows, const std::vector<std::int64_t>& cuts) {
    const std::int64_t first_row = request * rows;
    const bool split = cuts.size() > 2;
    for (std::size_t c = 0; c + 1 < cuts.size(); ++c) {
      const std::int64_t partial = split ? partial_rows : -1;
      info.insert(info.end(), {request, partial, first_row, first_row + rows, cuts[c], cuts[c + 1],
                               cuts.back() - cuts[c + 1], 0});
      if (!split) continue;
      partial_map.push_back(partial);
      partial_rows += rows;
    }
    final_map.insert(final_map.end(), {first_row, first_row + rows});
    reduce_indptr.push_back(static_cast<std::int64_t>(partial_map.size()));
  }
};

}  // namespace

std::array<std::pair<std::string_view, const std::optional<IntArray>&>, work_list_names.size()>
named_work_lists(const MlaDecodeCall& call) {
  const auto& names = work_list_names;
  return {{{names[0], call.work_indptr},
           {names[1], call.work_info_set},
           {names[2], call.reduce_indptr},
           {names[3], call.reduce_final_map},
           {names[4], call.reduce_partial_map}}};
}

bool gives_work_lists(const MlaDecodeCall& call) {
  return std::ranges::any_of(named_work_lists(call),
                             [](const auto& named) { return named.second.has_value(); });
}

std::optional<std::string> work_lists_error(const MlaDecodeCall& call) {
  const auto lists = named_work_lists(call);
  for (std::size_t i = 0; i < lists.size(); ++i) {
    const auto& [name, array] = lists[i];
    if (auto error = list_error(std::string(name), array, shapes[i])) return error;
  }
  const std::optional<WorkArrays> arrays = work_arrays(call);
  if (!arrays) return "a list is absent";
  const std::int64_t tiles = arrays->reduce_indptr.size(0) - 1;
  if (arrays->reduce_final_map.size(0) >= tiles) return std::nullopt;
  return "reduce_final_map has " + std::to_string(arrays->reduce_final_map.size(0)) + " rows for " +
         std::to_string(tiles) + " tiles of reduce_indptr";
}

std::optional<WorkArrays> work_arrays(const MlaDecodeCall& call) {
  if (!call.work_indptr || !call.work_info_set || !call.reduce_indptr || !call.reduce_final_map ||
      !call.reduce_partial_map) {
    return std::nullopt;
  }
  return WorkArrays{*call.work_indptr, *call.work_info_set, *call.reduce_indptr,
                    *call.reduce_final_map, *call.reduce_partial_map};
}

WorkLists work_lists(const MlaDecodeCall& call) {
  WorkLists out;
  const std::optional<WorkArrays> arrays = work_arrays(call);
  if (!arrays || work_lists_error(call)) return out;
  const std::vector<std::int64_t>& info = arrays->work_info_set.values;
  for_each_range(
      arrays->work_indptr.values, arrays->work_info_set.size(0),
      [&](std::size_t, std::size_t entry) { out.works.push_back(work_at(info, entry)); });
  const std::vector<std::int64_t>& rows = arrays->reduce_final_map.values;
  const std::vector<std::int64_t>& partials = arrays->reduce_partial_map.values;
  for_each_range(
      arrays->reduce_indptr.values, arrays->reduce_partial_map.size(0),
      [&](std::size_t tile, std::size_t entry) {
        if (out.merges.empty() || out.merges.back().index != tile) {
          out.merges.push_back({bounded(rows[2 * tile]), bounded(rows[2 * tile + 1]), {}, tile});
        }
        out.merges.back().partials.push_back(bounded(partials[entry]));
      });
  return out;
}

MlaDecodeCall with_work_lists(MlaDecodeCall call, std::int64_t parts) {
  const std::vector<std::int64_t>& indptr = call.kv_indptr.values;
  const std::int64_t rows = call.max_seqlen_q;
  const std::int64_t share = (indptr.back() / parts + granularity) / granularity * granularity;
  Building building;
  for (std::size_t i = 0; i + 1 < indptr.size(); ++i) {
    building.add(static_cast<std::int64_t>(i), rows,
                 cuts_of(indptr[i], indptr[i + 1], share, rows));
  }
  const auto works = static_cast<std::int64_t>(building.info.size() / words_per_work);
  std::vector<std::int64_t> work_indptr;
  for (std::int64_t p = 0; p <= parts; ++p) work_indptr.push_back(p * works / parts);
  const auto tiles = static_cast<std::int64_t>(indptr.size()) - 1;
  // The list sizes the partial results too, so it is never empty.
  if (building.partial_map.empty()) building.partial_map.push_back(0);
  call.persistent = true;
  call.work_indptr = int_array(Dtype::int32, std::move(work_indptr));
  call.work_info_set = int_matrix(Dtype::int32, works, 8, std::move(building.info));
  call.reduce_indptr = int_array(Dtype::int32, std::move(building.reduce_indptr));
  call.reduce_final_map = int_matrix(Dtype::int32, tiles, 2, std::move(building.final_map));
  call.reduce_partial_map = int_array(Dtype::int32, std::move(building.partial_map));
  call.sized_for = call.planned_for = WorkPlan{.max_seqlen_qo = rows,
                                               .num_heads = call.q.size(1),
                                               .dtype_q = call.q.dtype,
                                               .dtype_kv = call.kv_buffer.dtype};
  return call;
}

}  // namespace attest
