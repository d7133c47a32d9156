#pragma once

#include "backends/hip/kernels/matrix_step.hpp"
#include "backends/hip/kernels/paged_block.hpp"
#include "backends/hip/kernels/write_row.hpp"

namespace attest::hip {

/// One block of attention over a paged cache: S::rows packed query rows of one request and kv head
/// against one split of the keys. Every key is loaded once, whatever the number of rows.
template <class T, class S, PlantedFault fault>
class PagedAttention {
  using F = typename S::Fragment;
  using L = SharedLayout<T, S>;

 public:
  __device__ PagedAttention(const PagedArgs& args, const BlockWork& work, std::int32_t kv_head,
                            std::int32_t v_chunk, unsigned char* shared)
      : args_(args),
        work_(work),
        kv_head_(kv_head),
        v_chunk_(v_chunk),
        shared_(shared),
        addresses_(args, work, kv_head, reinterpret_cast<std::int64_t*>(shared + L::offsets)) {}

  __device__ void run(std::int32_t split) {
    const TileRange tiles = tiles_of_split<S, fault>(work_, split, args_.splits);
    if (tiles.begin < tiles.end) addresses_.fetch(tiles.begin);
    place_rows();
    prepare();
    if (tiles.begin < tiles.end) walk(tiles);
    softmax_.add_lanes();
    publish_groups();
    merge_rows(split);
    write_rows();
  }

 private:
  using Place = RowPlace<S::key_groups>;
  static_assert(sizeof(Place) == Place::bytes);

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

  /// Everything but the keys: queries, zeros that stay, and an empty softmax.
  __device__ void prepare() {
    load_queries();
    clear_padding<T, S::head_dim, L::k_pitch, S::threads>(at<T>(L::k), S::stages * S::tile,
                                                          args_.head_dim);
    if constexpr (!S::v_in_k) {
      clear_padding<T, S::v_dim, L::v_pitch, S::threads>(at<T>(L::v), S::stages * S::tile,
                                                         args_.v_head_dim);
    }
    softmax_.clear();
    unrolled<F::rows_held>([&](auto r) {
      const int m = row_group() * group_rows + F::row(lane_of<F>(), r);
      softmax_.visible[r] = {};
      if (has_row(m)) {
        softmax_.visible[r] = keys_of_token<fault>(args_, work_, (work_.first + m) / group());
      }
    });
    unrolled<S::value_tiles>(
        [&](auto t) { unrolled<F::elements>([&](auto i) { out_[t][i] = 0; }); });
    scale_.scale = args_.scale * factor(args_.q_descale) * factor(args_.k_descale);
    scale_.softcap = args_.softcap;
  }

  /// With two stages tile t + 1 loads while tile t is computed. Each barrier says two things: the
  /// tile has arrived for everyone, and everyone is done with the one before, whose memory the next
  /// load takes.
  __device__ void walk(TileRange tiles) {
    constexpr std::int32_t ahead = S::stages - 1;
    addresses_.publish(tiles.begin);  // fetched by run()
    if constexpr (ahead == 1) {
      __syncthreads();
      load(tiles.begin);
      if (tiles.begin + 1 < tiles.end) {
        addresses_.fetch(tiles.begin + 1);
        addresses_.publish(tiles.begin + 1);
      }
    }
    for (std::int32_t tile = tiles.begin; tile < tiles.end; ++tile) {
      if constexpr (ahead == 0) {
        __syncthreads();
        load(tile);
      }
      wait_for_copies();
      __syncthreads();
      if (ahead == 1 && tile + 1 < tiles.end) load(tile + 1);
      const std::int32_t next = tile + 1 + ahead;
      if (next < tiles.end) addresses_.fetch(next);
      compute(tile);
      if (next < tiles.end) addresses_.publish(next);
    }
  }

  __device__ __forceinline__ void load(std::int32_t tile) {
    const std::int32_t first = tile * S::tile;
    TileSource source;
    source.data = args_.k.data;
    source.format = args_.kv_format;
    source.offsets = addresses_.of(tile);
    source.begin = work_.first_key - first;
    source.end = work_.last_key - first;
    source.dim = args_.head_dim;
    source.vectors = args_.vectors != 0;
    load_tile<T, S::head_dim, L::k_pitch, S::tile, S::threads>(k_tile(tile), source);
    if constexpr (!S::v_in_k) {
      source.data = args_.v.data;
      source.offsets += S::tile;
      source.dim = args_.v_head_dim;
      load_tile<T, S::v_dim, L::v_pitch, S::tile, S::threads>(v_tile(tile), source);
    }
  }

  __device__ __forceinline__ void compute(std::int32_t tile) {
    const int first = key_group() * S::group_keys;
    float scores[S::score_tiles][F::elements];
    scores_step<T, S>(scores, at<T>(L::q) + row_group() * group_rows * L::q_pitch,
                      k_tile(tile) + first * L::k_pitch, args_.head_dim);
    float rescale[F::rows_held];
    softmax_.template step<fault>(scores, tile * S::tile + first, lane_of<F>(), scale_, rescale);
    bool rescales = false;
    unrolled<F::rows_held>([&](auto r) { rescales = rescales || rescale[r] != 1.0F; });
    if (rescales) {  // the maximum seldom moves after the first tiles
      unrolled<S::value_tiles>([&](auto t) {
        unrolled<F::elements>([&](auto i) { out_[t][i] *= rescale[i / F::columns_held]; });
      });
    }
    if constexpr (!on_matrix_units<T, F>) {  // matrix units round when they pack
      unrolled<S::score_tiles>([&](auto t) {
        unrolled<F::elements>(
            [&](auto i) { scores[t][i] = to_float(element_of<T>(scores[t][i])); });
      });
    }
    const T* values = v_tile(tile) + first * L::v_pitch;
    if constexpr (S::v_in_k) values += v_chunk_ * S::v_dim;
    values_step<T, S>(out_, scores, values,
                      at<float>(L::weights) + group_number() * group_rows * L::weights_pitch);
  }

  /// Every group's part of its rows, relative to its own maximum.
  __device__ void publish_groups() {
    __syncthreads();  // the tiles' memory is free
    float* const merge = at<float>(L::merge) + group_number() * group_rows * L::merge_pitch;
    float* const stats = at<float>(L::stats) + group_number() * group_rows * 2;
    const int lane = lane_of<F>();
    unrolled<F::rows_held>([&](auto r) {
      const int row = F::row(lane, r);
      if (F::column(lane, 0, 0) == 0) {
        stats[2 * row] = softmax_.maximum[r];
        stats[2 * row + 1] = softmax_.sum[r];
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
      Place& place = at<Place>(L::places)[m];
      if (!has_row(m)) continue;
      const int first_group = m / group_rows * S::key_groups;
      const float* const parts =
          at<float>(L::stats) + (first_group * group_rows + m % group_rows) * 2;
      RowStats stats;
      unrolled<S::key_groups>(
          [&](auto g) { stats.maximum = fmaxf(stats.maximum, parts[g * group_rows * 2]); });
      unrolled<S::key_groups>([&](auto g) {
        place.weight[g] = weight_of(parts[g * group_rows * 2], stats.maximum);
        if constexpr (fault == PlantedFault::groups_not_rescaled) place.weight[g] = 1;
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
    const bool adds_sink = args_.sinks != nullptr && fault != PlantedFault::sink_missing;
    if (args_.splits > 1) {
      if (adds_sink && fault == PlantedFault::sink_in_every_split)
        stats.add_sink(args_.sinks[head]);
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
      const Place& place = at<Place>(L::places)[m];
      const int first = m / group_rows * S::key_groups * group_rows + m % group_rows;
      float value = 0;
      unrolled<S::key_groups>([&](auto g) {
        value +=
            place.weight[g] * at<float>(L::merge)[(first + g * group_rows) * L::merge_pitch + d];
      });
      if (args_.splits > 1) {
        args_.part_out[place.at + d] = value;
      } else {
        write_out(args_, place.at + d, value);
      }
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
  TileAddresses<S, fault> addresses_;
  ScoreScale scale_;
  RunningSoftmax<F> softmax_;
  float out_[S::value_tiles][F::elements];
};

// A kernel has internal linkage: one binary holds a build of it for each engine.
namespace {

/// Grid: (blocks of rows, kv heads, splits * chunks of v); block: S::threads; shared memory:
/// SharedLayout<T, S>::bytes.
template <class T, class S, PlantedFault fault>
__global__ void
#if defined(__CUDACC__)
__launch_bounds__(S::threads, S::resident_blocks)
#else
__launch_bounds__(S::threads)
#endif
    paged_attention(PagedArgs args) {
  const BlockWork work = work_of_block<fault>(args, blockIdx.x, S::rows);
  if (work.request < 0) return;
  const auto split = static_cast<std::int32_t>(blockIdx.z) % args.splits;
  const auto v_chunk = static_cast<std::int32_t>(blockIdx.z) / args.splits;
  PagedAttention<T, S, fault> block(args, work, static_cast<std::int32_t>(blockIdx.y), v_chunk,
                                    dynamic_shared<unsigned char>());
  block.run(split);
}

}  // namespace
}  // namespace attest::hip
