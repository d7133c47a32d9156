#pragma once

#include <cstddef>

#include "backends/hip/kernels/block_rows.hpp"
#include "backends/hip/kernels/write_row.hpp"

namespace attest::hip {

/// What a block's groups have computed, from registers to memory: groups that share rows are merged
/// in their order.
template <class T, class S, PlantedFault fault>
class BlockResult : protected BlockRows<T, S, fault> {
 protected:
  using Rows = BlockRows<T, S, fault>;
  using Rows::args_, Rows::v_chunk_;
  using Rows::BlockRows;
  using Rows::group_number, Rows::has_row, Rows::head_of, Rows::row_of, Rows::thread;
  using typename Rows::F;
  using typename Rows::L;
  using typename Rows::Place;

  /// Every group's part of its rows, relative to its own maximum.
  __device__ void publish_groups() {
    __syncthreads();  // the tiles' memory is free
    float* const merge = this->template at<float>(L::merge) +
                         std::ptrdiff_t{group_number()} * group_rows * L::merge_pitch;
    float* const stats =
        this->template at<float>(L::stats) + std::ptrdiff_t{group_number()} * group_rows * 2;
    const int lane = lane_of<F>();
    unrolled<F::rows_held>([&](auto r) {
      const int row = F::row(lane, r);
      if (F::column(lane, 0, 0) == 0) {
        float* const stat = stats + std::ptrdiff_t{row} * 2;
        stat[0] = softmax_.maximum[r];
        stat[1] = softmax_.sum[r];
      }
      unrolled<S::value_tiles>([&](auto t) {
        unrolled<F::columns_held>([&](auto c) {
          merge[row * L::merge_pitch + F::column(lane, t, c)] = out_[t][r * F::columns_held + c];
        });
      });
    });
    __syncthreads();
  }

  /// What each group's part of a row counts, and where the row goes. One thread a row.
  __device__ void merge_rows(std::int32_t split) {
    for (int m = thread(); m < S::rows; m += S::threads) {
      Place& place = this->template at<Place>(L::places)[m];
      if (!has_row(m)) continue;
      const int first_group = m / group_rows * S::key_groups;
      const float* const parts =
          this->template at<float>(L::stats) + (first_group * group_rows + m % group_rows) * 2;
      RowStats stats;
      unrolled<S::key_groups>(
          [&](auto g) { stats.maximum = fmaxf(stats.maximum, parts[g * group_rows * 2]); });
      unrolled<S::key_groups>([&](auto g) {
        place.weight[g] = weight_of(parts[g * group_rows * 2], stats.maximum);
        if constexpr (fault == PlantedFault::groups_not_rescaled) place.weight[g] = 1;
        if (fault == PlantedFault::sum_of_one_group && g > 0) return;
        stats.sum += place.weight[g] * parts[g * group_rows * 2 + 1];
      });
      const float whole = finish_row(m, split, stats, place.at);
      unrolled<S::key_groups>([&](auto g) { place.weight[g] *= whole; });
    }
    __syncthreads();
  }

  /// Writes a row's statistics, says where its elements go and what all of them are multiplied by.
  __device__ float finish_row(int m, std::int32_t split, RowStats stats, std::int64_t& to) const {
    const std::int64_t row = row_of(m);
    const std::int32_t head = head_of(m);
    const bool adds_sink =
        args_.sinks != nullptr && fault != PlantedFault::sink_missing &&
        (fault != PlantedFault::sink_missing_under_a_window || args_.window_left < 0);
    if (args_.splits > 1) {
      if (adds_sink && fault == PlantedFault::sink_in_every_split)
        stats.add_sink(args_.sinks[head]);
      if (adds_sink && fault == PlantedFault::sink_in_empty_splits && stats.sum == 0) {
        stats.add_sink(args_.sinks[head]);
      }
      const std::int64_t part = part_of(args_, row, head, split);
      to = part * args_.v_head_dim + v_chunk_ * S::v_dim;
      if (v_chunk_ == 0) {
        args_.part_stats[2 * part] = stats.maximum;
        args_.part_stats[2 * part + 1] = stats.sum;
      }
      return stats.scale;
    }
    if (adds_sink) stats.add_sink(args_.sinks[head]);
    to = row * args_.out.row_stride + head * args_.out.head_stride + v_chunk_ * S::v_dim;
    if (v_chunk_ == 0) write_lse(args_, row, head, stats);
    return stats.normaliser() * factor(args_.v_descale);
  }

  /// The groups' parts of each element, added in their order.
  __device__ void write_rows() const {
    const int left = args_.v_head_dim - v_chunk_ * S::v_dim;
    const int columns = left < S::v_dim ? left : S::v_dim;
    for (int e = thread(); e < S::rows * S::v_dim; e += S::threads) {
      const int m = e / S::v_dim;
      const int d = e % S::v_dim;
      if (!has_row(m) || d >= columns) continue;
      if constexpr (fault == PlantedFault::rows_past_8_not_stored) {
        if (m % 16 >= 8) continue;
      }
      const Place& place = this->template at<Place>(L::places)[m];
      const int first = m / group_rows * S::key_groups * group_rows + m % group_rows;
      float value = 0;
      unrolled<S::key_groups>([&](auto g) {
        value += place.weight[g] *
                 this->template at<float>(L::merge)[(first + g * group_rows) * L::merge_pitch + d];
      });
      if (args_.splits > 1) {
        args_.part_out[place.at + d] = value;
      } else {
        write_out(args_, place.at + d, value);
      }
    }
  }

  RunningSoftmax<F> softmax_;
  float out_[S::value_tiles][F::elements];
};

}  // namespace attest::hip
