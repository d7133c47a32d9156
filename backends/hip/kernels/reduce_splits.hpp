#pragma once

#include "backends/hip/kernels/reduce_shared.hpp"
#include "backends/hip/kernels/write_row.hpp"

namespace attest::hip {

/// Merges the splits of one row and head.
template <PlantedFault fault>
class SplitReduction {
 public:
  __device__ SplitReduction(const PagedArgs& args, std::int64_t row, std::int32_t head,
                            ReduceShared& shared)
      : args_(args),
        row_(row),
        head_(head),
        shared_(shared),
        first_part_(part_of(args, row, head, 0)) {}

  /// \param first_column  of at most reduce_columns.
  __device__ void run(int first_column) {
    RowStats stats = weigh();
    const int left = args_.v_head_dim - first_column;
    const int columns = left < reduce_columns ? left : reduce_columns;
    add_parts(first_column, columns, stats.maximum);
    if (adds_sink()) stats.add_sink(args_.sinks[head_]);
    const float whole = stats.normaliser() * factor(args_.v_descale);
    if constexpr (fault == PlantedFault::rows_without_keys_not_written) {
      if (stats.sum == 0) return;
    }
    const std::int64_t to = row_written() * args_.out.row_stride + head_ * args_.out.head_stride;
    for (int d = thread(); d < columns; d += reduce_threads) {
      float value = 0;
      unrolled<quarters>([&](auto q) { value += shared_.parts[q][d]; });
      write_out(args_, to + first_column + d, value * whole);
    }
    if (thread() == 0 && first_column == 0) write_lse(args_, row_, head_, stats);
  }

 private:
  static constexpr int quarters = reduce_threads / reduce_lanes;

  /// The row's statistics; every thread comes to the same ones.
  __device__ RowStats weigh() {
    for (int s = thread(); s < splits(); s += reduce_threads) {
      shared_.maxima[s] = args_.part_stats[2 * (first_part_ + s)];
      shared_.sums[s] = args_.part_stats[2 * (first_part_ + s) + 1];
    }
    __syncthreads();
    // Every group of 32 lanes reduces all of them, in the same order.
    RowStats stats;
    const int lane = thread() % reduce_lanes;
    for (int s = lane; s < splits(); s += reduce_lanes) {
      stats.maximum = fmaxf(stats.maximum, shared_.maxima[s]);
    }
    for (int mask = 1; mask < reduce_lanes; mask *= 2) {
      stats.maximum = fmaxf(stats.maximum, __shfl_xor(stats.maximum, mask));
    }
    for (int s = lane; s < splits(); s += reduce_lanes) {
      stats.sum += shared_.sums[s] * weight(s, stats.maximum);
    }
    for (int mask = 1; mask < reduce_lanes; mask *= 2) {
      stats.sum += __shfl_xor(stats.sum, mask);
    }
    return stats;
  }

  __device__ float weight(int split, float maximum) const {
    if (fault == PlantedFault::splits_not_rescaled) return 1;
    if (fault == PlantedFault::empty_split_is_nan && shared_.maxima[split] == nothing_seen) {
      return shared_.maxima[split] - shared_.maxima[split];
    }
    return weight_of(shared_.maxima[split], maximum);
  }

  /// Each quarter of the block adds every fourth split: the same order in every run.
  __device__ void add_parts(int first_column, int columns, float maximum) {
    constexpr int each = reduce_columns / reduce_lanes;
    const int quarter = thread() / reduce_lanes;
    const int lane = thread() % reduce_lanes;
    float sum[each] = {};
    // A split without keys has left zeros. Four splits at a time, so that their loads overlap.
    for (int first = quarter; first < splits(); first += 4 * quarters) {
      float value[4][each];
      unrolled<4>([&](auto k) {
        const int s = first + k * quarters;
        const float* const part =
            args_.part_out + (first_part_ + s) * args_.v_head_dim + first_column + lane;
        unrolled<each>([&](auto i) {
          const bool real = s < splits() && lane + i * reduce_lanes < columns;
          value[k][i] = real ? part[i * reduce_lanes] : 0.0F;
        });
      });
      unrolled<4>([&](auto k) {
        const int s = first + k * quarters;
        const float counts = s < splits() ? weight(s, maximum) : 0.0F;
        unrolled<each>([&](auto i) { sum[i] += counts * value[k][i]; });
      });
    }
    unrolled<each>([&](auto i) { shared_.parts[quarter][lane + i * reduce_lanes] = sum[i]; });
    __syncthreads();
  }

  __device__ int splits() const {
    return args_.splits - (fault == PlantedFault::last_split_dropped ? 1 : 0);
  }
  __device__ bool adds_sink() const {
    return args_.sinks != nullptr && fault != PlantedFault::sink_missing &&
           fault != PlantedFault::sink_in_every_split &&
           fault != PlantedFault::sink_missing_in_the_reduction &&
           (fault != PlantedFault::sink_missing_under_a_window || args_.window_left < 0);
  }
  __device__ std::int64_t row_written() const {
    if constexpr (fault != PlantedFault::reduction_forgets_the_first_row) return row_;
    std::int64_t first = 0;
    for (std::int32_t i = 0; i < args_.batch; ++i) {
      if (first_row_of(args_, i) <= row_) first = first_row_of(args_, i);
    }
    return row_ - first;
  }
  __device__ static int thread() { return static_cast<int>(threadIdx.x); }

  const PagedArgs& args_;
  std::int64_t row_;
  std::int32_t head_;
  ReduceShared& shared_;
  std::int64_t first_part_;
};

namespace {

/// Grid: (rows, q heads, chunks of 256 columns); block: reduce_threads, with ReduceShared.
template <PlantedFault fault>
__global__ void __launch_bounds__(reduce_threads) reduce_splits(PagedArgs args) {
  const std::int64_t row = blockIdx.x;
  const auto head = static_cast<std::int32_t>(blockIdx.y);
  if (row_is_covered(args, row)) {
    SplitReduction<fault> reduction(args, row, head, *dynamic_shared<ReduceShared>());
    reduction.run(static_cast<int>(blockIdx.z) * reduce_columns);
  } else if (fault == PlantedFault::padding_rows_written) {
    const std::int64_t to = row * args.out.row_stride + head * args.out.head_stride;
    for (unsigned d = threadIdx.x; d < static_cast<unsigned>(args.v_head_dim);
         d += reduce_threads) {
      write_out(args, to + d, 0);
    }
  }
}

}  // namespace
}  // namespace attest::hip
