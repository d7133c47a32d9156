#include "property_tests/misread/key_rows.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "contracts/dtype.hpp"
#include "contracts/slot_map.hpp"
#include "memory/poison.hpp"

namespace attest {
namespace {

std::size_t half_index(PoolHalf half) { return half == PoolHalf::k ? 0 : 1; }

/// Takes how many whole strides fit; a stride of 0 has none.
std::int64_t take(std::int64_t& rest, std::int64_t stride) {
  if (stride <= 0) return 0;
  const std::int64_t count = rest / stride;
  rest %= stride;
  return count;
}

}  // namespace

KeyRows::KeyRows(const KernelView& view)
    : view_(view), contents_(contents_by_slot(view.source->problem(), view.source->slots())) {
  for (const auto& [slot, key] : contents_) used_units_.insert(slot / view.k.unit_slots);
  const Model& model = view.model();
  keep(std::vector<float>(static_cast<std::size_t>(std::max(model.head_dim, model.v_head_dim))));
}

std::size_t KeyRows::dim(PoolHalf half) const {
  const Model& model = view_.model();
  return static_cast<std::size_t>(half == PoolHalf::k ? model.head_dim : model.v_head_dim);
}

std::size_t KeyRows::keep(std::vector<float> row) {
  const bool nan = std::any_of(row.begin(), row.end(), [](float x) { return std::isnan(x); });
  nan_.push_back(nan ? 1 : 0);
  rows_.push_back(std::move(row));
  return rows_.size() - 1;
}

std::span<const float> KeyRows::values(std::size_t number, PoolHalf half) const {
  return std::span(rows_[number]).first(dim(half));
}

std::optional<KeyRows::Cell> KeyRows::cell(const PoolLayout& pool, std::int64_t element) const {
  if (element < 0 || pool.page_stride <= 0) return std::nullopt;
  std::int64_t rest = element;
  const std::int64_t page = take(rest, pool.page_stride);
  const std::int64_t slot_stride = pool.page_slots > 1 ? pool.slot_stride : 0;
  const std::int64_t head_stride = pool.heads > 1 ? pool.head_stride : 0;
  Cell at;
  if (slot_stride >= head_stride) {
    at.slot = take(rest, slot_stride);
    at.head = take(rest, head_stride);
  } else {
    at.head = take(rest, head_stride);
    at.slot = take(rest, slot_stride);
  }
  if (at.slot >= pool.page_slots || at.head >= pool.heads || rest >= pool.dim) return std::nullopt;
  at.slot += page * pool.page_slots;
  at.element = rest;
  return at;
}

Region KeyRows::region_of(const PoolLayout& pool, std::int64_t element,
                          const std::optional<Cell>& cell) const {
  if (element < 0) return Region::before_base;
  if (pool.page_stride > 0 && element / pool.page_stride * pool.page_slots >= pool.slots) {
    return Region::past_end;
  }
  const bool in_use = cell && used_units_.contains(cell->slot / pool.unit_slots);
  return in_use ? Region::past_kv_len : Region::unreferenced;
}

float KeyRows::poison(PoolHalf half, Region region) const {
  const PoisonPlan& plan = view_.source->poison();
  const bool in_page = region == Region::past_kv_len || region == Region::not_stored;
  // As PoolContents has it: V behind the last key is finite.
  const bool finite = half == PoolHalf::v && in_page && !plan.nan_in_v_tail;
  const Dtype dtype = layout(half).dtype;
  return decode(dtype, poison_bits(dtype, finite ? Poison::loud : plan.poison, region));
}

std::vector<float> KeyRows::row_of(PoolHalf half, const ContentKey& key, std::int64_t head) const {
  std::vector<double> exact(dim(half));
  half == PoolHalf::k ? view_.source->k_row(key, head, exact)
                      : view_.source->v_row(key, head, exact);
  return {exact.begin(), exact.end()};
}

std::vector<float> KeyRows::gather(PoolHalf half, std::int64_t element) const {
  const PoolLayout& pool = layout(half);
  const std::int64_t heads = view_.model().num_kv_heads;
  const std::int64_t copies = std::max<std::int64_t>(1, pool.heads / heads);
  const auto head_of = [&](const Cell& at) { return std::min(at.head / copies, heads - 1); };
  std::vector<float> row(dim(half));
  for (std::size_t d = 0; d < row.size();) {
    const std::int64_t place = element + static_cast<std::int64_t>(d);
    const std::optional<Cell> there = cell(pool, place);
    const Cell at = there.value_or(Cell{.slot = -1});
    const auto found = contents_.find(at.slot);
    if (found == contents_.end()) {
      row[d] = poison(half, region_of(pool, place, there));
      ++d;
      continue;
    }
    // Latent rows are longer than the V in them.
    const PoolHalf whole = view_.model().mla ? PoolHalf::k : half;
    const std::vector<float> from = row_of(whole, found->second, head_of(at));
    for (auto e = static_cast<std::size_t>(at.element); e < from.size() && d < row.size(); ++e) {
      row[d++] = from[e];
    }
  }
  return row;
}

std::size_t KeyRows::pooled(PoolHalf half, std::int64_t element) {
  auto& known = pooled_[half_index(half)];
  const auto at = known.find(element);
  if (at != known.end()) return at->second;
  return known[element] = keep(gather(half, element));
}

std::size_t KeyRows::fresh(PoolHalf half, std::int64_t row, std::int64_t head) {
  const std::int64_t heads = view_.model().num_kv_heads;
  const auto key = view_.source->token_of_row(row);
  if (!key || head < 0 || head >= heads) return zeros;
  auto& known = fresh_[half_index(half)];
  const std::int64_t id = row * heads + head;
  const auto at = known.find(id);
  if (at != known.end()) return at->second;
  return known[id] = keep(row_of(half, *key, head));
}

std::size_t KeyRows::unstored(PoolHalf half) {
  auto& known = fresh_[half_index(half)];
  const auto at = known.find(-1);
  if (at != known.end()) return at->second;
  return known[-1] = keep(std::vector<float>(dim(half), poison(half, Region::not_stored)));
}

}  // namespace attest
