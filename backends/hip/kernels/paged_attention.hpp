#pragma once

#include "backends/hip/kernels/block_result.hpp"
#include "backends/hip/kernels/matrix_step.hpp"
#include "backends/hip/kernels/paged_block.hpp"

namespace attest::hip {

/// One block of attention over a paged cache: S::rows packed query rows of one request and kv head
/// against one split of the keys. Every key is loaded once, whatever the number of rows.
template <class T, class S, PlantedFault fault>
class PagedAttention : private BlockResult<T, S, fault> {
  using Result = BlockResult<T, S, fault>;
  using Result::args_, Result::work_, Result::v_chunk_, Result::softmax_, Result::out_;
  using Result::group, Result::group_number, Result::k_tile, Result::v_tile, Result::has_row,
      Result::key_group, Result::row_group;
  using typename Result::F;
  using typename Result::L;

 public:
  __device__ PagedAttention(const PagedArgs& args, const BlockWork& work, std::int32_t kv_head,
                            std::int32_t v_chunk, unsigned char* shared)
      : Result(args, work, kv_head, v_chunk, shared),
        addresses_(args, work, kv_head, reinterpret_cast<std::int64_t*>(shared + L::offsets)) {}

  __device__ void run(std::int32_t split) {
    const TileRange tiles = tiles_of_split<S, fault>(work_, split, args_.splits);
    if (tiles.begin < tiles.end) addresses_.fetch(tiles.begin);
    this->place_rows();
    prepare();
    if (tiles.begin < tiles.end) walk(tiles);
    softmax_.add_lanes();
    this->publish_groups();
    this->merge_rows(split);
    this->write_rows();
  }

 private:
  /// Everything but the keys: queries, zeros that stay, and an empty softmax.
  __device__ void prepare() {
    this->load_queries();
    clear_padding<T, S::head_dim, L::k_pitch, S::threads>(this->template at<T>(L::k),
                                                          S::stages * S::tile, args_.head_dim);
    if constexpr (!S::v_in_k) {
      clear_padding<T, S::v_dim, L::v_pitch, S::threads>(this->template at<T>(L::v),
                                                         S::stages * S::tile, args_.v_head_dim);
    }
    softmax_.clear();
    unrolled<F::rows_held>([&](auto r) {
      const int m = row_group() * group_rows + F::row(lane_of<F>(), r);
      softmax_.visible[r] = {};
      if (has_row(m)) {
        softmax_.visible[r] = this->visible_to((work_.first + m) / group());
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
    if constexpr (fault == PlantedFault::far_keys_read_zero) {
      const int some_key = source.begin > 0 ? source.begin : 0;
      const std::int64_t limit = (std::int64_t{1} << 31) / bytes_of(args_.kv_format);
      if (source.offsets[some_key] >= limit) source.end = source.begin;
    }
    load_tile<T, S::head_dim, L::k_pitch, S::tile, S::threads>(k_tile(tile), source);
    if constexpr (!S::v_in_k) {
      source.data = args_.v.data;
      source.offsets += S::tile;
      if constexpr (fault == PlantedFault::v_loaded_to_the_end_of_the_page) {
        const std::int32_t pages = (work_.last_key + args_.page_size - 1) / args_.page_size;
        source.end = pages * args_.page_size - first;
      }
      source.dim = args_.v_head_dim;
      load_tile<T, S::v_dim, L::v_pitch, S::tile, S::threads>(v_tile(tile), source);
    }
  }

  __device__ __forceinline__ void compute(std::int32_t tile) {
    const int first = key_group() * S::group_keys;
    float scores[S::score_tiles][F::elements];
    scores_step<T, S>(scores, this->template at<T>(L::q) + row_group() * group_rows * L::q_pitch,
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
    const T* values = this->v_tile_read(tile) + first * L::v_pitch;
    if constexpr (S::v_in_k) values += v_chunk_ * S::v_dim;
    values_step<T, S>(
        out_, scores, values,
        this->template at<float>(L::weights) + group_number() * group_rows * L::weights_pitch);
  }

  TileAddresses<S, fault> addresses_;
  ScoreScale scale_;
};

}  // namespace attest::hip
