#pragma once

#include "backends/hip/kernels/block_work.hpp"
#include "backends/hip/kernels/kv_tile.hpp"
#include "backends/hip/kernels/shape.hpp"
#include "backends/hip/runtime/kernel.hpp"

namespace attest::hip {

/// A block's packed query rows: where they lie in q and the output, and their queries in shared
/// memory.
template <class T, class S, PlantedFault fault>
class BlockRows {
 protected:
  using F = typename S::Fragment;
  using L = SharedLayout<T, S>;
  using Place = RowPlace<S::key_groups>;
  static_assert(sizeof(Place) == Place::bytes);

  __device__ BlockRows(const PagedArgs& args, const BlockWork& work, std::int32_t kv_head,
                       std::int32_t v_chunk, unsigned char* shared)
      : args_(args), work_(work), kv_head_(kv_head), v_chunk_(v_chunk), shared_(shared) {}

  /// Where the block's rows lie in q. Division by the group's size is dear, so it is done once.
  __device__ void place_rows() {
    for (int m = thread(); m < S::rows; m += S::threads) {
      std::int64_t from = -1;
      if (has_row(m)) from = row_of(m) * args_.q.row_stride + head_of(m) * args_.q.head_stride;
      at<Place>(L::places)[m].at = from;
    }
    __syncthreads();
  }

  /// Queries into shared memory, zeros where rows or columns are padding.
  __device__ void load_queries() {
    T* const q = at<T>(L::q);
    if (args_.q_vectors != 0) {
      constexpr int chunks = S::head_dim / 8;
      for (int c = thread(); c < S::rows * chunks; c += S::threads) {
        const int m = c / chunks;
        const int d = c % chunks * 8;
        const std::int64_t from = at<Place>(L::places)[m].at;
        T* const to = q + m * L::q_pitch + d;
        if (from >= 0 && d < args_.head_dim) {
          copy8(to, args_.q.data, format_of<T>, from + d);  // here with the first tile
        } else {
          unrolled<8>([&](auto i) { to[i] = element_of<T>(0); });
        }
      }
      return;
    }
    for (int e = thread(); e < S::rows * S::head_dim; e += S::threads) {
      const int m = e / S::head_dim;
      const int d = e % S::head_dim;
      const std::int64_t from = at<Place>(L::places)[m].at;
      const bool real = from >= 0 && d < args_.head_dim;
      q[m * L::q_pitch + d] =
          real ? load_as<T>(args_.q.data, args_.q_format, from + d) : element_of<T>(0);
    }
  }

  template <class E>
  __device__ E* at(int offset) const {
    return reinterpret_cast<E*>(shared_ + offset);
  }
  __device__ T* k_tile(std::int32_t tile) const {
    return at<T>(L::k + tile % S::stages * L::k_stage);
  }
  __device__ T* v_tile(std::int32_t tile) const {
    return S::v_in_k ? k_tile(tile) : at<T>(L::v + tile % S::stages * L::v_stage);
  }
  __device__ T* v_tile_read(std::int32_t tile) const {
    return v_tile(fault == PlantedFault::v_of_the_other_stage ? tile + 1 : tile);
  }
  /// What token `token` sees, as far as the block's faults let it.
  __device__ KeyRange visible_to(std::int32_t token) const {
    KeyRange keys = keys_of_token<fault>(args_, work_, token);
    if constexpr (fault == PlantedFault::window_of_the_blocks_first_row) {
      keys.begin = work_.first_key;
    }
    if constexpr (fault == PlantedFault::causal_of_the_blocks_last_row) keys.end = work_.last_key;
    return keys;
  }
  __device__ static int thread() { return static_cast<int>(threadIdx.x); }
  __device__ static int group_number() { return thread() / F::lanes; }
  __device__ static int row_group() { return group_number() / S::key_groups; }
  __device__ static int key_group() { return group_number() % S::key_groups; }
  __device__ int group() const { return args_.num_q_heads / args_.num_kv_heads; }
  __device__ bool has_row(int m) const { return work_.first + m < work_.packed; }
  __device__ std::int64_t row_of(int m) const {
    return work_.first_row + (work_.first + m) / group();
  }
  __device__ std::int32_t head_of(int m) const {
    if constexpr (fault == PlantedFault::packing_starts_at_head_0) {
      return kv_head_ * group() + m % group();
    }
    return kv_head_ * group() + (work_.first + m) % group();
  }

  const PagedArgs& args_;
  const BlockWork& work_;
  std::int32_t kv_head_, v_chunk_;
  unsigned char* shared_;
};

}  // namespace attest::hip
