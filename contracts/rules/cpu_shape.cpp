#include "contracts/rules/cpu_shape.hpp"

#include <optional>
#include <string>

#include "contracts/rules/finding_text.hpp"

namespace attest {
namespace {

std::int64_t batch(const Truth& truth) {
  return static_cast<std::int64_t>(truth.problem.requests.size());
}

void one_entry_per_request(std::string_view name, const IntArray& array, const Truth& truth,
                           Report& report) {
  if (array.meta.shape.size() == 1 && array.size(0) == batch(truth)) return;
  report.add(std::string(name), shape_text(array.meta) + " entries",
             "(" + std::to_string(batch(truth)) + "), one for each request");
}

void extend_batch_arrays(const ExtendCall& c, const Truth& truth, Report& report) {
  one_entry_per_request("seq_lens", c.seq_lens, truth, report);
  one_entry_per_request("req_pool_indices", c.req_pool_indices, truth, report);
  one_entry_per_request("extend_seq_lens", c.extend_seq_lens, truth, report);
  one_entry_per_request("extend_start_loc", c.extend_start_loc, truth, report);
  if (c.encoder_lens) one_entry_per_request("encoder_lens", *c.encoder_lens, truth, report);
}

void decode_batch_arrays(const DecodeCall& c, const Truth& truth, Report& report) {
  one_entry_per_request("seq_lens", c.seq_lens, truth, report);
  one_entry_per_request("req_pool_indices", c.req_pool_indices, truth, report);
  one_entry_per_request("loc", c.loc, truth, report);
  if (c.encoder_lens) one_entry_per_request("encoder_lens", *c.encoder_lens, truth, report);
}

template <class CallType>
void table_is_dense(const CallType& c, const Truth&, Report& report) {
  const TensorMeta& m = c.req_to_token.meta;
  const bool matrix = m.shape.size() == 2 && m.shape[0] > 0 && m.shape[1] > 0;
  const bool dense = matrix && m.strides[1] == 1 && (m.shape[0] == 1 || m.strides[0] == m.shape[1]);
  if (dense) return;
  const std::string stride = matrix ? " with row stride " + std::to_string(m.strides[0]) : "";
  report.add("req_to_token", shape_text(m) + stride,
             "(rows, columns), both positive, row stride = columns");
}

/// Shape the tensor must have; -1 = any size.
struct Wanted {
  std::int64_t rows, heads, dim;
};

/// One kv head expanded over every query head gives the right numbers: another rule calls it slow.
bool expanded(const TensorMeta& t, const Wanted& want, const Model& m) {
  return want.heads == 1 && t.shape[1] == m.num_q_heads && t.strides[1] == 0;
}

void has_shape(std::string_view name, const TensorMeta& t, const Wanted& want, const Truth& truth,
               Report& report) {
  const bool fits = t.shape.size() == 3 && (want.rows < 0 || t.shape[0] == want.rows) &&
                    (t.shape[1] == want.heads || expanded(t, want, truth.problem.model)) &&
                    t.shape[2] == want.dim;
  if (fits) return;
  const std::string rows = want.rows < 0 ? "slots" : std::to_string(want.rows);
  report.add(
      std::string(name), shape_text(t),
      "(" + rows + ", " + std::to_string(want.heads) + ", " + std::to_string(want.dim) + ")");
}

/// A pool with other heads than the new keys means a prefill of MLA without a prefix to extend.
void as_many_heads(std::string_view name, const std::optional<TensorMeta>& fresh,
                   const TensorMeta& pool, Report& report) {
  if (!fresh || fresh->size(1) == pool.size(1)) return;
  report.add(std::string(name), std::to_string(fresh->size(1)) + " heads",
             std::to_string(pool.size(1)) + ", as in the pool");
}

void extend_tensors(const ExtendCall& c, const Truth& truth, Report& report) {
  const Model& m = truth.problem.model;
  const std::int64_t rows = truth.problem.total_new_tokens();
  has_shape("q_extend", c.q_extend, {rows, m.num_q_heads, m.head_dim}, truth, report);
  has_shape("o_extend", c.o_extend, {rows, m.num_q_heads, m.v_head_dim}, truth, report);
  if (c.k_extend) {
    has_shape("k_extend", *c.k_extend, {rows, m.num_kv_heads, m.head_dim}, truth, report);
  }
  if (c.v_extend) {
    has_shape("v_extend", *c.v_extend, {rows, m.num_kv_heads, m.v_head_dim}, truth, report);
  }
  has_shape("k_buffer", c.k_buffer, {-1, m.num_kv_heads, m.head_dim}, truth, report);
  has_shape("v_buffer", c.v_buffer, {c.k_buffer.size(0), m.num_kv_heads, m.v_head_dim}, truth,
            report);
  as_many_heads("k_extend", c.k_extend, c.k_buffer, report);
  as_many_heads("v_extend", c.v_extend, c.v_buffer, report);
}

void decode_tensors(const DecodeCall& c, const Truth& truth, Report& report) {
  const Model& m = truth.problem.model;
  const std::int64_t rows = batch(truth);
  has_shape("query", c.query, {rows, m.num_q_heads, m.head_dim}, truth, report);
  has_shape("output", c.output, {rows, m.num_q_heads, m.v_head_dim}, truth, report);
  if (c.key) has_shape("key", *c.key, {rows, m.num_kv_heads, m.head_dim}, truth, report);
  if (c.value) has_shape("value", *c.value, {rows, m.num_kv_heads, m.v_head_dim}, truth, report);
  has_shape("k_buffer", c.k_buffer, {-1, m.num_kv_heads, m.head_dim}, truth, report);
  has_shape("v_buffer", c.v_buffer, {c.k_buffer.size(0), m.num_kv_heads, m.v_head_dim}, truth,
            report);
  as_many_heads("key", c.key, c.k_buffer, report);
  as_many_heads("value", c.value, c.v_buffer, report);
}

void heads_divide(const TensorMeta& q, const TensorMeta& k, Report& report) {
  if (k.size(1) > 0 && q.size(1) % k.size(1) == 0) return;
  report.add("k_buffer", std::to_string(k.size(1)) + " heads",
             "a divisor of the " + std::to_string(q.size(1)) + " query heads");
}

void extend_heads(const ExtendCall& c, const Truth&, Report& report) {
  heads_divide(c.q_extend, c.k_buffer, report);
}

void decode_heads(const DecodeCall& c, const Truth&, Report& report) {
  heads_divide(c.query, c.k_buffer, report);
}

void scratch_fits(const DecodeCall& c, const Truth& truth, Report& report) {
  const Model& m = truth.problem.model;
  const TensorMeta& t = c.attn_logits;
  const bool fits = t.shape.size() == 4 && t.dtype == Dtype::f32 && t.shape[0] == batch(truth) &&
                    t.shape[1] == m.num_q_heads && t.shape[2] > 0 &&
                    t.shape[3] == m.v_head_dim + 1 &&
                    t.strides == contiguous(t.dtype, t.shape).strides;
  if (fits) return;
  report.add("attn_logits", std::string(name(t.dtype)) + " " + shape_text(t),
             "dense f32 (" + std::to_string(batch(truth)) + ", " + std::to_string(m.num_q_heads) +
                 ", splits, " + std::to_string(m.v_head_dim + 1) + ")");
}

void mask_holds_squares(const ExtendCall& c, const Truth& truth, Report& report) {
  if (!c.tree_mask) return;
  const std::int64_t q = c.max_len_extend;
  std::int64_t entries = 0;
  const bool fits = q > 0 && !__builtin_mul_overflow(q, q, &entries) &&
                    !__builtin_mul_overflow(entries, batch(truth), &entries) &&
                    c.tree_mask->numel() == entries;
  if (fits) return;
  report.add("tree_mask", std::to_string(c.tree_mask->numel()) + " entries",
             std::to_string(batch(truth)) + " squares of max_len_extend = " + std::to_string(q));
}

constexpr Rule rules[] = {
    {.id = "batch.arrays_have_one_entry_per_request",
     .says = "seq_lens, req_pool_indices, extend_seq_lens, extend_start_loc, encoder_lens and loc "
             "have one entry for each request (draft decode: for each branch)",
     .why = "the kernel takes the batch from seq_lens alone: rows past it stay unwritten, arrays "
            "that are shorter are read past their end",
     .source = "sgl-project/sglang#36430 (draft decode: batch lengths for bs * topk rows)",
     .severity = Severity::fault,
     .extend = extend_batch_arrays,
     .decode = decode_batch_arrays},
    {.id = "req_to_token.is_a_dense_matrix",
     .says = "req_to_token is a row-major matrix whose rows follow one another without a gap",
     .why = "the kernels step from row to row by the column count, whatever the stride says",
     .source = "sgl-project/sglang sgl-kernel/csrc/cpu/extend.cpp, max_context_len",
     .severity = Severity::wrong,
     .extend = table_is_dense<ExtendCall>,
     .decode = table_is_dense<DecodeCall>},
    {.id = "tensor.has_the_layers_shape",
     .says = "q, k, v, the pools and the output have the step's rows and the layer's heads and "
             "head sizes",
     .why = "the output's size is never checked, nor are the pool's head sizes against q's: a "
            "wider pool row is silently truncated",
     .source = "sgl-project/sglang sgl-kernel/csrc/cpu/extend.cpp and decode.cpp, the checks",
     .severity = Severity::wrong,
     .extend = extend_tensors,
     .decode = decode_tensors},
    {.id = "k_buffer.heads_divide_the_query_heads",
     .says = "the number of query heads is a multiple of the number of kv heads",
     .why = "decode does not check: left-over query heads merge logits nobody wrote",
     .source = "sgl-project/sglang sgl-kernel/csrc/cpu/decode.cpp, num_groups",
     .severity = Severity::wrong,
     .extend = extend_heads,
     .decode = decode_heads},
    {.id = "attn_logits.fits_the_batch",
     .says = "attn_logits is dense f32 of (batch, query heads, splits, v head size + 1)",
     .why = "every split of every row writes its partial result and log-sum-exp there",
     .source = "sgl-project/sglang sgl-kernel/csrc/cpu/decode.cpp, CHECK_EQ(attn_logits.size(...))",
     .severity = Severity::fault,
     .decode = scratch_fits},
    {.id = "tree_mask.holds_one_square_per_request",
     .says = "tree_mask has batch * max_len_extend^2 entries",
     .why = "a mask over the whole key range (the layout of the GPU kernels) has another size; it "
            "raises, and goes unnoticed when every prefix is empty",
     .source = "sgl-project/sglang sgl-kernel/csrc/cpu/extend.cpp, tree_mask.numel()",
     .severity = Severity::fault,
     .extend = mask_holds_squares},
};

}  // namespace

std::span<const Rule> cpu_shape_rules() { return rules; }

}  // namespace attest
