#include "backends/scalar/attend.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <exception>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "backends/scalar/elements.hpp"
#include "backends/scalar/partial.hpp"
#include "backends/scalar/tile.hpp"
#include "contracts/resource_error.hpp"

namespace attest {
namespace {

/// One (group, kv head): all its rows and the q heads that share the head's K and V.
class GroupOfHead {
 public:
  GroupOfHead(const Operands& op, const RowGroup& group, std::int64_t kv_head)
      : op_(op),
        group_(group),
        kv_head_(kv_head),
        q_heads_(heads_of(op, kv_head)),
        heads_(static_cast<std::int64_t>(q_heads_.size())) {}

  void run() {
    load_queries();
    const auto keys = static_cast<std::int64_t>(group_.keys.size());
    const std::int64_t tiles = (keys + tile_keys - 1) / tile_keys;
    splits_ = parts_of(tiles);
    tiles_per_split_ = (tiles + splits_ - 1) / splits_;
    const bool rounds_down = op_.fault == Fault::split_remainder_lost;
    if (rounds_down) tiles_per_split_ = std::max<std::int64_t>(1, tiles / splits_);
    partials_.assign(group_.rows.size() * static_cast<std::size_t>(heads_ * splits_), {});
    for (Partial& partial : partials_) {
      partial.acc.assign(static_cast<std::size_t>(padded(op_.v_head_dim)), 0.0F);
    }
    for (std::int64_t t = 0; t < tiles; ++t) {
      const std::int64_t first = t * tile_keys;
      tile_.load(op_, group_, kv_head_, first, std::min(tile_keys, keys - first));
      const bool first_of_a_later = t > 0 && t % tiles_per_split_ == 0;
      if (first_of_a_later && op_.fault == Fault::first_tile_of_splits_skipped) continue;
      if (rounds_down && t / tiles_per_split_ >= splits_) break;
      for (std::size_t r = 0; r < group_.rows.size(); ++r) walk(r, t / tiles_per_split_);
      if (!first_of_a_later || op_.fault != Fault::tile_in_two_splits) continue;
      for (std::size_t r = 0; r < group_.rows.size(); ++r) walk(r, t / tiles_per_split_ - 1);
    }
    store();
  }

 private:
  /// The q heads that read a kv head; left-over ones read none and are never written.
  static std::vector<std::int64_t> heads_of(const Operands& op, std::int64_t kv_head) {
    const std::int64_t group = op.num_q_heads / op.num_kv_heads;
    std::vector<std::int64_t> heads;
    for (std::int64_t h = 0; h < group * op.num_kv_heads; ++h) {
      std::int64_t reads = h / std::max<std::int64_t>(group, 1);
      if (op.fault == Fault::kv_heads_interleaved) reads = h % op.num_kv_heads;
      if (op.fault == Fault::kv_head_is_the_q_head) reads = std::min(h, op.num_kv_heads - 1);
      if (op.fault == Fault::group_from_the_kv_heads) {
        reads = std::min(h / op.num_kv_heads, op.num_kv_heads - 1);
      }
      if (op.fault == Fault::head_blocks_straddle_groups) {
        // Modelled: a block of heads, a power of two, takes the kv head of its first one.
        const auto block_of_heads =
            static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(group)));
        reads = h / block_of_heads * block_of_heads / group;
      }
      if (reads == kv_head) heads.push_back(h);
    }
    return heads;
  }
  std::int64_t q_head(std::int64_t g) const { return q_heads_[static_cast<std::size_t>(g)]; }
  /// Parts of the keys: those of the launch, except where a fault takes them from the rows, or has
  /// parts of 128 keys as the kernel that it was reported of.
  std::int64_t parts_of(std::int64_t tiles) const {
    if (op_.fault == Fault::merge_stops_at_the_first_row) {
      return std::max<std::int64_t>(1, (tiles + 1) / 2);
    }
    const bool by_rows = op_.fault == Fault::splits_from_the_rows && group_.rows.size() > 2;
    return by_rows ? op_.splits + 1 : op_.splits;
  }
  /// The parts that hold a key of the group's first row.
  std::size_t parts_of_the_first_row() const {
    const std::int64_t end = std::max<std::int64_t>(group_.rows.front().end, 1);
    return static_cast<std::size_t>((end - 1) / tile_keys / tiles_per_split_ + 1);
  }
  std::size_t index(std::size_t row, std::int64_t g) const {
    return row * static_cast<std::size_t>(heads_) + static_cast<std::size_t>(g);
  }

  void load_queries() {
    q_.resize(group_.rows.size() * static_cast<std::size_t>(heads_ * op_.head_dim));
    const auto bytes = static_cast<std::int64_t>(size_bytes(op_.q_dtype));
    for (std::size_t r = 0; r < group_.rows.size(); ++r) {
      for (std::int64_t g = 0; g < heads_; ++g) {
        const auto [row, head] = place_of_query(r, g);
        const std::int64_t at = group_.rows[row].row * op_.q_row_stride + head * op_.q_head_stride;
        widen(op_.q_dtype, op_.q + at * bytes, op_.head_dim, query(r, g));
        if (op_.fault == Fault::q_scaled_in_its_own_type) scale_query(query(r, g));
      }
    }
  }
  /// Row of the group and q head. A mistake unpacks them the other way round.
  std::pair<std::size_t, std::int64_t> place_of_query(std::size_t r, std::int64_t g) const {
    if (op_.fault != Fault::q_rows_before_heads) return {r, q_head(g)};
    const std::size_t packed = index(r, g);
    const std::size_t rows = group_.rows.size();
    return {packed % rows, q_head(static_cast<std::int64_t>(packed / rows))};
  }
  /// Modelled: q takes its scale before the product and is stored in its own type again.
  void scale_query(float* values) const {
    const auto count = static_cast<std::size_t>(op_.head_dim);
    std::vector<std::byte> stored(count * size_bytes(op_.q_dtype));
    for (std::size_t d = 0; d < count; ++d) values[d] *= op_.scale;
    narrow(op_.q_dtype, values, op_.head_dim, stored.data(), false);
    widen(op_.q_dtype, stored.data(), op_.head_dim, values);
    for (std::size_t d = 0; d < count; ++d) values[d] /= op_.scale;
  }
  float* query(std::size_t row, std::int64_t g) {
    return q_.data() + index(row, g) * static_cast<std::size_t>(op_.head_dim);
  }

  void walk(std::size_t r, std::int64_t split) {
    const QueryRow& row = group_.rows[r];
    if (row.end <= tile_.first || row.begin >= tile_.first + tile_.count) return;
    for (std::int64_t g = 0; g < heads_; ++g) {
      const std::size_t at =
          index(r, g) * static_cast<std::size_t>(splits_) + static_cast<std::size_t>(split);
      absorb(op_, tile_, row, query(r, g), partials_[at]);
    }
  }

  void store() {
    const auto count = static_cast<std::size_t>(splits_);
    const bool cut = op_.fault == Fault::merge_stops_at_the_first_row && tiles_per_split_ > 0;
    const std::size_t merged = cut ? std::min(count, parts_of_the_first_row()) : count;
    std::vector<float> out(static_cast<std::size_t>(padded(op_.v_head_dim)));
    for (std::int64_t g = 0; g < heads_; ++g) {
      for (std::size_t r = 0; r < group_.rows.size(); ++r) {
        const std::span<const Partial> parts(partials_.data() + index(r, g) * count, merged);
        // Modelled: lengths that are no power of two all got the first position's output.
        const bool repeat = op_.fault == Fault::first_row_repeated && r > 0 &&
                            !std::has_single_bit(group_.rows.size());
        const float lse = repeat ? 0.0F : merge(op_, q_head(g), parts, out.data());
        write_row(op_, group_.rows[r].row, q_head(g), out.data(), lse);
      }
    }
  }

  const Operands& op_;
  const RowGroup& group_;
  const std::int64_t kv_head_;
  const std::vector<std::int64_t> q_heads_;
  const std::int64_t heads_;  ///< how many they are
  std::int64_t splits_ = 1, tiles_per_split_ = 0;
  std::vector<float> q_;
  std::vector<Partial> partials_;  ///< (row, head of the group, split)
  Tile tile_;
};

/// Takes kv heads until none is left, each with all groups in order, so that rows which wrong
/// metadata gives to two groups come out the same whatever the threads do. Keeps its first error.
void work(const Operands& op, std::span<const RowGroup> groups, std::atomic<std::int64_t>& next,
          std::exception_ptr& error) {
  try {
    for (std::int64_t head = next++; head < op.num_kv_heads; head = next++) {
      for (const RowGroup& group : groups) GroupOfHead(op, group, head).run();
    }
  } catch (...) {
    error = std::current_exception();
  }
}

}  // namespace

void write_row(const Operands& op, std::int64_t row, std::int64_t head, const float* values,
               float lse) {
  if (op.fault == Fault::last_head_not_written && head == op.num_q_heads - 1) return;
  const auto bytes = static_cast<std::int64_t>(size_bytes(op.out_dtype));
  const std::int64_t at = (row * op.out_row_stride + head * op.out_head_stride) * bytes;
  if (at < 0 || at + op.v_head_dim * bytes > static_cast<std::int64_t>(op.out.size())) {
    throw KernelRefusal("row " + std::to_string(row) + " head " + std::to_string(head) +
                        " of the output is outside its buffer");
  }
  // Modelled: a loop over whole blocks of 64 values.
  const bool blocks = op.fault == Fault::small_head_dims_not_written;
  const std::int64_t written = blocks ? op.v_head_dim / 64 * 64 : op.v_head_dim;
  narrow(op.out_dtype, values, written, op.out.data() + at, op.fault == Fault::output_truncated);
  const auto lse_at = static_cast<std::size_t>(row * op.num_q_heads + head);
  if (lse_at < op.lse.size()) op.lse[lse_at] = lse;
}

void attend(const Operands& op, std::span<const RowGroup> groups) {
  std::atomic<std::int64_t> next = 0;
  std::vector<std::exception_ptr> errors(
      static_cast<std::size_t>(std::max<std::int64_t>(op.threads, 1)));
  {
    std::vector<std::jthread> others;
    for (std::size_t i = 1; i < errors.size(); ++i) {
      others.push_back(start_thread(i + 1, errors.size(), "the scalar kernel",
                                    [&, i] { work(op, groups, next, errors[i]); }));
    }
    work(op, groups, next, errors[0]);
  }
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

}  // namespace attest
