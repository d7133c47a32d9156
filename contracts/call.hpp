#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "contracts/dtype.hpp"

namespace attest {

/// Shape of a tensor argument. Strides and storage_offset count elements, storage_bytes the whole
/// storage the view lies in (a framework specialises launches on it).
struct TensorMeta {
  Dtype dtype = Dtype::bf16;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;
  std::int64_t storage_offset = 0;
  std::int64_t storage_bytes = 0;
  std::string storage;  ///< label; equal labels share storage. Empty = unknown

  std::int64_t size(std::size_t dim) const { return dim < shape.size() ? shape[dim] : 0; }
  std::int64_t stride(std::size_t dim) const { return dim < strides.size() ? strides[dim] : 0; }
  bool operator==(const TensorMeta&) const = default;
};

/// Row-major contiguous tensor of `shape` in a storage of exactly its size.
TensorMeta contiguous(Dtype dtype, std::vector<std::int64_t> shape);

/// A metadata array: descriptor and values. Values are stored row-major over `meta.shape`, whatever
/// the strides; `meta.dtype` is what the kernel sees (int32, int64, uint8, bool).
struct IntArray {
  TensorMeta meta;
  std::vector<std::int64_t> values;
  bool recorded = true;  ///< false: a capture kept only a hash; rules that need values do not apply

  std::int64_t numel() const;
  std::int64_t size(std::size_t dim) const { return meta.size(dim); }
  std::int64_t operator[](std::size_t i) const { return values[i]; }
  /// Element (row, col) of a two-dimensional array.
  std::int64_t at(std::size_t row, std::size_t col) const {
    return values[row * static_cast<std::size_t>(meta.shape[1]) + col];
  }
  bool operator==(const IntArray&) const = default;
};

/// One-dimensional contiguous array of `dtype`.
IntArray int_array(Dtype dtype, std::vector<std::int64_t> values);
/// Two-dimensional contiguous array of `dtype`; values row-major, rows * cols of them.
IntArray int_matrix(Dtype dtype, std::int64_t rows, std::int64_t cols,
                    std::vector<std::int64_t> values);

/// Which kernel form the host code launches for a call. Absent in captures, which stop at the
/// Python call.
struct Launch {
  std::string form =
      "2d";  ///< "2d": one program walks the whole KV; "3d": split-KV and a reduction
  std::int64_t kv_splits = 1;       ///< segments per sequence of the 3d form
  std::int64_t queries_per_kv = 1;  ///< q heads that share one load of K/V
  bool operator==(const Launch&) const = default;
};

/// AITER `unified_attention` (also vLLM's Triton kernel of that name). docs/contracts.md,
/// "unified".
struct UnifiedCall {
  TensorMeta q;           ///< (total_q, num_q_heads, head_dim)
  TensorMeta k;           ///< (num_pages, page_size, num_kv_heads, head_dim)
  TensorMeta v;           ///< (num_pages, page_size, num_kv_heads, v_head_dim)
  TensorMeta out;         ///< (total_q, num_q_heads, v_head_dim)
  IntArray cu_seqlens_q;  ///< (batch + 1), starts at 0
  IntArray seqused_k;     ///< (batch), total KV length, this step's tokens included
  IntArray block_table;   ///< (batch, max_pages) page ids
  std::int64_t max_seqlen_q = 0;
  std::int64_t max_seqlen_k = 0;
  double softmax_scale = 0;
  bool causal = true;
  std::array<std::int64_t, 2> window_size = {-1, -1};  ///< (left, right); left -1 = off
  double softcap = 0;
  std::optional<TensorMeta> q_descale, k_descale, v_descale;  ///< one-element f32
  std::optional<TensorMeta> sinks;                            ///< (num_q_heads)
  std::optional<TensorMeta> qq_bias;  ///< additive bias over the new tokens, one for all requests
  std::optional<Launch> launch;
  bool operator==(const UnifiedCall&) const = default;
};

/// SGLang CPU `extend_attention_cpu`: prefill, chunked prefill, draft extend, target verify.
struct ExtendCall {
  TensorMeta q_extend;  ///< (total_q, num_q_heads, head_dim)
  std::optional<TensorMeta> k_extend,
      v_extend;                   ///< (total_q, num_kv_heads, dim): the new tokens' K/V
  TensorMeta o_extend;            ///< (total_q, num_q_heads, v_head_dim)
  TensorMeta k_buffer, v_buffer;  ///< (num_slots, num_kv_heads, dim): read for the prefix only
  IntArray req_to_token;          ///< (rows, context) slot of token j of pool row r
  IntArray req_pool_indices;      ///< (batch) int64
  IntArray seq_lens;              ///< (batch) int64, prefix + extend
  IntArray extend_seq_lens;       ///< (batch)
  IntArray extend_start_loc;      ///< (batch) first row of the request in q/k/v/o
  std::int64_t max_len_extend = 0;
  double sm_scale = 0;
  double logit_cap = 0;
  bool is_cross_attn = false;
  std::int64_t sliding_window_size = 0;  ///< visible keys including self; <= 0 = off
  std::optional<IntArray> encoder_lens;  ///< (batch) int64
  std::optional<TensorMeta> sinks;       ///< (num_q_heads), q's dtype
  std::optional<IntArray>
      tree_mask;  ///< bool, batch * max_len_extend^2, true = visible (QLEN_ONLY)
  bool operator==(const ExtendCall&) const = default;
};

/// SGLang CPU `decode_attention_cpu`: one query per row; stores K/V at `loc` first.
struct DecodeCall {
  TensorMeta query;               ///< (batch, num_q_heads, head_dim)
  TensorMeta k_buffer, v_buffer;  ///< (num_slots, num_kv_heads, dim)
  TensorMeta output;              ///< (batch, num_q_heads, v_head_dim)
  std::optional<TensorMeta> key,
      value;                  ///< (batch, num_kv_heads, dim): stored at loc before attention
  IntArray loc;               ///< (batch) int64 slot of the new token
  TensorMeta attn_logits;     ///< (batch, num_q_heads, num_kv_splits, v_head_dim + 1) f32 scratch
  IntArray req_to_token;      ///< (rows, context)
  IntArray req_pool_indices;  ///< (batch) int64
  IntArray seq_lens;          ///< (batch) int64, the token stored at loc included
  double sm_scale = 0;
  double logit_cap = 0;
  bool is_cross_attn = false;
  std::int64_t sliding_window_size = 0;  ///< visible keys including self; <= 0 = off
  std::optional<IntArray> encoder_lens;  ///< (batch) int64
  std::optional<TensorMeta> sinks;       ///< (num_q_heads)
  bool operator==(const DecodeCall&) const = default;
};

/// What AITER's `get_mla_metadata_info_v1` or `get_mla_metadata_v1` was asked for. Not an argument
/// of the kernel: its work lists are right for a launch of these rows, heads and types only.
struct WorkPlan {
  std::int64_t max_seqlen_qo = 1;
  std::int64_t num_heads = 0;              ///< q heads
  std::optional<Dtype> dtype_q, dtype_kv;  ///< absent = not passed: the plan is then that of bf16
  bool fast_mode = true;
  bool intra_batch_mode = false;
  std::int64_t max_splits = -1;  ///< of a request; -1 = as many as compute units
  bool operator==(const WorkPlan&) const = default;
};

/// AITER `mla_decode_fwd`: one draft length for the whole batch, one latent kv head.
struct MlaDecodeCall {
  TensorMeta q;                ///< (total_q, num_q_heads, 576)
  TensorMeta kv_buffer;        ///< (num_pages, page_size, 1, 576)
  TensorMeta o;                ///< (total_q, num_q_heads, 512)
  IntArray qo_indptr;          ///< (batch + 1) int32
  IntArray kv_indptr;          ///< (batch + 1) int32
  IntArray kv_indices;         ///< (>= kv_indptr[-1]) int32 page ids (slots at page size 1)
  IntArray kv_last_page_lens;  ///< (batch) int32
  std::int64_t max_seqlen_q = 1;
  std::int64_t page_size = 1;
  double sm_scale = 0;
  double logit_cap = 0;
  std::optional<std::int64_t> num_kv_splits;
  std::optional<TensorMeta> q_scale, kv_scale;     ///< one-element f32
  bool persistent = false;                         ///< work_meta_data given: the lists decide
  std::optional<IntArray> work_indptr;             ///< (parts + 1) int32
  std::optional<IntArray> work_info_set;           ///< (works, 8) int32, contracts/work_lists.hpp
  std::optional<IntArray> reduce_indptr;           ///< (tiles + 1) int32
  std::optional<IntArray> reduce_final_map;        ///< (tiles, 2) int32 rows [first, last)
  std::optional<IntArray> reduce_partial_map;      ///< int32 rows of the partial results
  std::optional<WorkPlan> sized_for, planned_for;  ///< by get_mla_metadata_info_v1, _v1
  bool operator==(const MlaDecodeCall&) const = default;
};

/// AITER `mha_batch_prefill_func` over a flat pool (one token a page). It returns its output.
struct BatchPrefillCall {
  TensorMeta q;              ///< (total_q, num_q_heads, head_dim)
  TensorMeta k;              ///< (num_slots, num_kv_heads, head_dim)
  TensorMeta v;              ///< (num_slots, num_kv_heads, v_head_dim)
  IntArray cu_seqlens_q;     ///< (batch + 1) int32, starts at 0
  IntArray kv_indptr;        ///< (batch + 1) int32, grows by the KV length
  IntArray kv_page_indices;  ///< int32 slots, and 128 more entries that are loaded
  std::int64_t max_seqlen_q = 0;
  std::int64_t max_seqlen_k = 0;
  std::optional<double> softmax_scale;  ///< absent = 1 / sqrt(head_dim)
  double logits_soft_cap = 0;
  bool causal = false;
  std::array<std::int64_t, 2> window_size = {-1, -1};         ///< (left, right); left -1 = off
  std::optional<TensorMeta> sink_ptr;                         ///< (num_q_heads)
  std::optional<TensorMeta> q_descale, k_descale, v_descale;  ///< one-element f32
  bool operator==(const BatchPrefillCall&) const = default;
};

/// AITER `paged_attention_ragged`: one query row a request, over pages listed in one flat array.
struct PagedRaggedCall {
  TensorMeta out;               ///< (batch, num_q_heads, v_head_dim)
  TensorMeta workspace_buffer;  ///< uint8 scratch: the partial results of every partition
  TensorMeta query;             ///< (batch, num_q_heads, head_dim); sets the number of rows
  TensorMeta key_cache;         ///< (num_pages, block_size, num_kv_heads, head_dim)
  TensorMeta value_cache;
  double scale = 0;
  IntArray kv_indptr;          ///< (batch + 1) int32
  IntArray kv_page_indices;    ///< (>= kv_indptr[-1]) int32 page ids (slots at block size 1)
  IntArray kv_last_page_lens;  ///< (batch) int32
  std::int64_t block_size = 1;
  std::int64_t max_num_partitions = 1;         ///< blocks of the grid along the keys
  std::string kv_cache_dtype = "auto";         ///< "auto": q's type; "fp8", "fp8_e4m3"
  std::string kv_cache_layout = "NHD";         ///< "NHD": tokens before heads; "HND"
  double logits_soft_cap = 0;                  ///< <= 0 = off
  std::optional<TensorMeta> k_scale, v_scale;  ///< one-element f32
  std::int64_t partition_size = 256;           ///< keys of one partition
  std::int64_t mtp = 1;                        ///< query rows a request
  bool operator==(const PagedRaggedCall&) const = default;
};

/// SGLang's Triton `extend_attention_fwd`, which its AITER backend verifies drafts with: the pool
/// holds the committed keys only, K and V of the new tokens come from tensors of their own.
struct LegacyExtendCall {
  TensorMeta q_extend;            ///< (total_q, num_q_heads, head_dim)
  TensorMeta k_extend, v_extend;  ///< (total_q, num_kv_heads, dim): the new tokens' K/V
  TensorMeta o_extend;            ///< (total_q, num_q_heads, v_head_dim)
  TensorMeta k_buffer, v_buffer;  ///< (num_slots, num_kv_heads, dim)
  IntArray qo_indptr;             ///< (batch + 1), starts at 0
  IntArray kv_indptr;             ///< (batch + 1), grows by the committed length
  IntArray kv_indices;            ///< (>= kv_indptr[-1]) slots of the committed keys
  /// Per request, from mask_indptr[i] on, a row of committed + new entries for each new token.
  std::optional<IntArray> custom_mask;  ///< bool or uint8; replaces the causal order
  bool is_causal = true;
  std::optional<IntArray> mask_indptr;  ///< (>= batch)
  std::int64_t max_len_extend = 0;
  double k_scale = 1, v_scale = 1;        ///< of the pool's rows
  std::optional<double> sm_scale;         ///< absent = 1 / sqrt(head_dim)
  double logit_cap = 0;                   ///< <= 0 = off
  bool skip_prefix_custom_mask = true;    ///< the mask's entries over committed keys are not read
  std::int64_t sliding_window_size = -1;  ///< largest visible distance; -1 = off
  std::optional<TensorMeta> sinks;        ///< (num_q_heads)
  bool operator==(const LegacyExtendCall&) const = default;
};

/// vLLM's CPU `cpu_attention_with_kv_cache`, in its AMX and its vector forms: paged K and V whose
/// blocks keep a head's tokens together.
struct VllmCpuCall {
  TensorMeta query;                   ///< (total_q, num_q_heads, head_dim)
  TensorMeta key_cache, value_cache;  ///< (num_blocks, num_kv_heads, block_size, head_dim)
  TensorMeta output;                  ///< (total_q, num_q_heads, head_dim)
  IntArray query_start_loc;           ///< (batch + 1) int32, starts at 0
  IntArray seq_lens;                  ///< (batch) int32, this step's tokens included
  double scale = 0;
  bool causal = true;
  std::int64_t sliding_window = -1;  ///< visible keys including self; -1 = off
  IntArray block_table;              ///< (batch, max_blocks) int32 page ids
  double softcap = 0;
  std::optional<TensorMeta> s_aux;      ///< sinks, (num_q_heads)
  double k_scale = 1, v_scale = 1;      ///< of an fp8 cache; not read over another one
  std::string kv_cache_dtype = "auto";  ///< "auto": q's type
  /// Not an argument: the form that the step's scheduler metadata was built for, "amx", "vec" or
  /// "vec16". Empty = unknown.
  std::string isa;
  bool operator==(const VllmCpuCall&) const = default;
};

/// What a kernel is handed: the metadata of one call of one signature. It can be wrong about the
/// Problem; finding that is what this project is for.
using Call = std::variant<UnifiedCall, ExtendCall, DecodeCall, MlaDecodeCall, BatchPrefillCall,
                          PagedRaggedCall, LegacyExtendCall, VllmCpuCall>;

/// The kernel calling conventions, in the order of Call's alternatives.
enum class Signature {
  unified,
  extend,
  decode,
  mla_decode,
  batch_prefill,
  paged_ragged,
  legacy_extend,
  vllm_cpu
};
inline constexpr std::array all_signatures = {Signature::unified,       Signature::extend,
                                              Signature::decode,        Signature::mla_decode,
                                              Signature::batch_prefill, Signature::paged_ragged,
                                              Signature::legacy_extend, Signature::vllm_cpu};

Signature signature_of(const Call& call);
std::string_view name(Signature signature);
std::optional<Signature> signature_from_name(std::string_view text);

}  // namespace attest
