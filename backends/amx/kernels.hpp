#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "backends/amx/row_block.hpp"

namespace attest::amx {

/// A (rows, heads, dim) bf16 operand: strides in elements, the last dimension dense.
struct Rows {
  const Bf16* data = nullptr;
  std::int64_t row_stride = 0;
  std::int64_t head_stride = 0;

  const Bf16* at(std::int64_t row, std::int64_t head) const {
    return data + row * row_stride + head * head_stride;
  }
};

/// An index array as the framework made it, int32 or int64.
struct Indices {
  const void* data = nullptr;
  bool wide = true;  ///< int64

  std::int64_t operator[](std::int64_t i) const {
    return wide ? static_cast<const std::int64_t*>(data)[i]
                : static_cast<const std::int32_t*>(data)[i];
  }
};

/// As many zeros as the longest row has elements.
const Bf16* zero_row();

/// What extend and decode share. Offsets are computed in 64 bits throughout. Nothing is checked
/// here: the backend checks every argument before the launch, since an error inside a parallel
/// region takes the process down.
struct KernelArguments {
  std::int64_t batch = 0;
  std::int64_t num_q_heads = 1, num_kv_heads = 1;
  BlockShape shape;
  Rows q;
  Rows k_pool, v_pool;  ///< row = slot
  Bf16* out = nullptr;  ///< (rows, num_q_heads, v_head_dim), contiguous
  Indices req_to_token;
  std::int64_t req_to_token_columns = 0;
  const std::int64_t* req_pool_indices = nullptr;
  const std::int64_t* seq_lens = nullptr;
  const std::int64_t* encoder_lens = nullptr;  ///< nullptr = none
  bool cross_attention = false;
  std::int64_t window = 0;       ///< visible keys including self; 0 = off
  const float* sinks = nullptr;  ///< per q head; nullptr = none
  int threads = 1;

  /// Addresses of one slot's K and V row.
  const Bf16* k_at(std::int64_t slot, std::int64_t head) const {
    return in_pool(k_pool, slot, head, shape.wrap.in_k);
  }
  const Bf16* v_at(std::int64_t slot, std::int64_t head) const {
    return in_pool(v_pool, slot, head, shape.wrap.in_v);
  }

 private:
  const Bf16* in_pool(const Rows& pool, std::int64_t slot, std::int64_t head, bool wraps) const {
    if (shape.wrap.step == WrapStep::none || !wraps) return pool.at(slot, head);
    if (shape.wrap.follows_index_dtype && req_to_token.wide) return pool.at(slot, head);
    const std::int64_t bytes =
        wrapped_bytes(shape.wrap, slot * pool.row_stride, 0, head * pool.head_stride, 2);
    return bytes == no_bytes ? zero_row() : pool.data + bytes / 2;
  }
};

/// First key of the block of 64 that key `key` of a request lies in.
constexpr std::int64_t block_start(std::int64_t key) {
  return key / keys_per_block * keys_per_block;
}

/// extend_attention_cpu's work. Prefix keys come from the pool, the new tokens' from k_new and
/// v_new.
struct ExtendArguments : KernelArguments {
  Rows k_new, v_new;
  const std::int64_t* extend_seq_lens = nullptr;
  const std::int64_t* extend_start_loc = nullptr;
  const std::uint8_t* tree_mask =
      nullptr;  ///< (batch, max_len, max_len), 1 = visible; nullptr = causal
  std::int64_t max_len = 0;
};

/// decode_attention_cpu's work: one row per request, K and V split into `splits` parts that are
/// merged in order.
struct DecodeArguments : KernelArguments {
  std::int64_t splits = 1;
};

/// What the tiles did on all threads, and an AMX instruction that raised (emulated engines; a
/// native one is a signal).
struct KernelOutcome {
  std::uint64_t loads = 0, dots = 0, bytes_loaded = 0;
  std::uint64_t zero_strides = 0, reads_before_write = 0;
  std::optional<std::string> raised;
};

/// Row blocks of one work item: they share the packing of every key block.
inline constexpr int max_blocks_per_item = 4;

/// One work item is (request, kv head, up to 4 blocks of 32 packed query rows): every K and V row
/// is packed once per item for all q heads of its group. Long items first, so that the last ones to
/// finish are short.
KernelOutcome extend(const ExtendArguments& args);

/// One work item is (request, kv head, up to 4 blocks of packed heads, split). Whoever finishes a
/// row's last split merges its splits, in their order.
KernelOutcome decode(const DecodeArguments& args);

}  // namespace attest::amx
