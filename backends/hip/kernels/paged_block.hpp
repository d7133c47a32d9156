#pragma once

#include "backends/hip/kernels/block_work.hpp"
#include "backends/hip/kernels/kv_tile.hpp"
#include "backends/hip/kernels/shape.hpp"
#include "backends/hip/runtime/kernel.hpp"

namespace attest::hip {

/// Offset of one key's row in elements, as the pools' strides say. The page id is widened before
/// anything is multiplied.
template <PlantedFault fault, bool is_v>
__device__ __forceinline__ std::int64_t offset_of(const PoolArgs& pool, std::int64_t page,
                                                  std::int32_t slot, std::int32_t head, int bytes,
                                                  std::int32_t page_size) {
  if constexpr (fault == PlantedFault::page_stride_assumed) {
    return page * page_size * pool.slot_stride + slot * pool.slot_stride + head * pool.head_stride;
  }
  if constexpr (fault == (is_v ? PlantedFault::v_elements_int32 : PlantedFault::k_elements_int32)) {
    // The wrap of a device's int32, in unsigned, where it is defined.
    return static_cast<std::int32_t>(
        static_cast<std::uint32_t>(page) * static_cast<std::uint32_t>(pool.page_stride) +
        static_cast<std::uint32_t>(slot) * static_cast<std::uint32_t>(pool.slot_stride) +
        static_cast<std::uint32_t>(head) * static_cast<std::uint32_t>(pool.head_stride));
  }
  const std::int64_t offset =
      page * pool.page_stride + slot * pool.slot_stride + head * pool.head_stride;
  if constexpr (fault == (is_v ? PlantedFault::v_bytes_int32 : PlantedFault::k_bytes_int32)) {
    return static_cast<std::int32_t>(offset * bytes) / bytes;
  }
  if constexpr (!is_v && fault == PlantedFault::k_bytes_uint32) {
    return static_cast<std::uint32_t>(offset * bytes) / static_cast<std::uint32_t>(bytes);
  }
  return offset;
}

/// The same with the mistake that the arguments name. backends/wrap_model.hpp has it for hosts.
template <bool is_v>
__device__ inline std::int64_t wrapped_offset_of(const PagedArgs& args, std::int64_t page,
                                                 std::int32_t slot, std::int32_t head, int bytes) {
  const PoolArgs& pool = is_v ? args.v : args.k;
  const WrapModel& wrap = args.wrap;
  const bool follows = !wrap.follows_index_dtype ||
                       (args.lengths.data != nullptr ? args.lengths.wide : args.table.wide) == 0;
  const bool here = follows && (is_v ? wrap.in_v : wrap.in_k);
  const auto after = [&](WrapStep step, std::int64_t value) -> std::int64_t {
    if (!here || wrap.step != step) return value;
    if (wrap.kind == WrapKind::int32) return static_cast<std::int32_t>(value);
    return static_cast<std::uint32_t>(value);
  };
  std::int64_t at = after(WrapStep::page_product, page * pool.page_stride);
  at = after(WrapStep::slot_sum, at + slot * pool.slot_stride);
  at = after(WrapStep::head_sum, at + head * pool.head_stride);
  at = after(WrapStep::bytes, at * bytes);
  const bool nothing =
      here && wrap.kind == WrapKind::descriptor && static_cast<std::uint32_t>(at) >= 0x7ffffffeU;
  if (nothing) {
    at = static_cast<const char*>(args.zeros) - static_cast<const char*>(pool.data);
  }
  return at / bytes;
}

/// Looks up where the keys of a tile lie, one key a thread, and leaves the offsets for the tile's
/// load. In two steps, so that the table is read while a tile is computed.
template <class S, PlantedFault fault>
class TileAddresses {
 public:
  __device__ TileAddresses(const PagedArgs& args, const BlockWork& work, std::int32_t kv_head,
                           std::int64_t* shared)
      : args_(args),
        table_start_(table_start_of<fault>(args, work.request)),
        first_key_(work.first_key),
        last_key_(work.last_key),
        kv_head_(kv_head),
        shared_(shared) {
    if constexpr (fault == PlantedFault::v_loaded_to_the_end_of_the_page) {
      last_key_ = (last_key_ + args.page_size - 1) / args.page_size * args.page_size;
    }
  }

  /// Offsets of tile `tile`: [key] of K, [S::tile + key] of V.
  __device__ std::int64_t* of(std::int32_t tile) const { return shared_ + tile % 2 * 2 * S::tile; }

  __device__ void fetch(std::int32_t tile) {
    unrolled<per_thread>([&](auto i) {
      const std::int32_t key = key_of(tile, i);
      page_[i] = 0;
      const std::int32_t at = looked_up<fault>(key, first_key_, S::tile);
      if (wanted(key)) page_[i] = index_at(args_.table, table_start_ + at / args_.page_size);
    });
  }
  __device__ void publish(std::int32_t tile) const {
    std::int64_t* const to = of(tile);
    const int bytes = bytes_of(args_.kv_format);
    unrolled<per_thread>([&](auto i) {
      const std::int32_t key = key_of(tile, i);
      if (!wanted(key)) return;
      const std::int32_t slot = key % args_.page_size;
      const std::int32_t at = key - tile * S::tile;
      if constexpr (fault == PlantedFault::offset_wraps) {
        to[at] = wrapped_offset_of<false>(args_, page_[i], slot, kv_head_, bytes);
        to[S::tile + at] = wrapped_offset_of<true>(args_, page_[i], slot, kv_head_, bytes);
        return;
      }
      to[at] = offset_of<fault, false>(args_.k, page_[i], slot, kv_head_, bytes, args_.page_size);
      if constexpr (!S::v_in_k) {
        to[S::tile + at] =
            offset_of<fault, true>(args_.v, page_[i], slot, kv_head_, bytes, args_.page_size);
      }
    });
  }

 private:
  static constexpr int per_thread = (S::tile + S::threads - 1) / S::threads;

  __device__ std::int32_t key_of(std::int32_t tile, int i) const {
    const std::int32_t at = static_cast<std::int32_t>(threadIdx.x) + i * S::threads;
    return at < S::tile ? tile * S::tile + at : -1;
  }
  /// Keys that some row of the block sees: no other cell of the table is read.
  __device__ bool wanted(std::int32_t key) const { return key >= first_key_ && key < last_key_; }

  const PagedArgs& args_;
  std::int64_t table_start_;
  std::int32_t first_key_, last_key_, kv_head_;
  std::int64_t* shared_;
  std::int64_t page_[per_thread] = {};
};

/// The tiles a block walks: those of its keys, divided among the splits.
struct TileRange {
  std::int32_t begin = 0, end = 0;
};

template <class S, PlantedFault fault>
__device__ inline TileRange tiles_of_split(const BlockWork& work, std::int32_t split,
                                           std::int32_t splits) {
  const std::int32_t last = (work.last_key + S::tile - 1) / S::tile;
  std::int32_t first = work.first_key / S::tile;
  if constexpr (fault == PlantedFault::window_prunes_one_tile_more) first += first > 0 ? 1 : 0;
  if (first >= last) return {};
  const std::int32_t each = (last - first + splits - 1) / splits;
  // In 64 bits: the last splits of a long sequence begin far behind its end.
  const std::int64_t begin = std::int64_t{first} + std::int64_t{split} * each;
  if (begin >= last) return {};
  const std::int64_t end = begin + each < last ? begin + each : last;
  return {static_cast<std::int32_t>(begin), static_cast<std::int32_t>(end)};
}

}  // namespace attest::hip
