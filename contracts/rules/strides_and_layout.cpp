#include "contracts/rules/strides_and_layout.hpp"

#include <string>
#include <utility>

#include "contracts/rules/finding_text.hpp"

namespace attest {
namespace {

/// Calls f(name, tensor, head size) for the tensors whose last dimension is a head.
template <class F>
void each_tensor(const UnifiedCall& c, const Model& m, F f) {
  f("q", c.q, m.head_dim), f("k", c.k, m.head_dim);
  f("v", c.v, m.v_head_dim), f("out", c.out, m.v_head_dim);
}
template <class F>
void each_tensor(const MlaDecodeCall& c, const Model& m, F f) {
  f("q", c.q, m.head_dim), f("kv_buffer", c.kv_buffer, m.head_dim), f("o", c.o, m.v_head_dim);
}

template <class F>
void each_tensor(const BatchPrefillCall& c, const Model& m, F f) {
  f("q", c.q, m.head_dim), f("k", c.k, m.head_dim), f("v", c.v, m.v_head_dim);
}

template <class F>
void each_tensor(const PagedRaggedCall& c, const Model& m, F f) {
  f("query", c.query, m.head_dim), f("key_cache", c.key_cache, m.head_dim);
  f("value_cache", c.value_cache, m.v_head_dim), f("out", c.out, m.v_head_dim);
}

template <class F>
void each_tensor(const LegacyExtendCall& c, const Model& m, F f) {
  f("q_extend", c.q_extend, m.head_dim), f("k_extend", c.k_extend, m.head_dim);
  f("v_extend", c.v_extend, m.v_head_dim), f("o_extend", c.o_extend, m.v_head_dim);
  f("k_buffer", c.k_buffer, m.head_dim), f("v_buffer", c.v_buffer, m.v_head_dim);
}

/// The cache's own last dimensions are not read.
template <class F>
void each_tensor(const VllmCpuCall& c, const Model& m, F f) {
  f("query", c.query, m.head_dim), f("output", c.output, m.v_head_dim);
}

std::pair<std::string_view, const TensorMeta&> output_of(const UnifiedCall& c) {
  return {"out", c.out};
}
std::pair<std::string_view, const TensorMeta&> output_of(const MlaDecodeCall& c) {
  return {"o", c.o};
}

std::pair<std::string_view, const TensorMeta&> output_of(const PagedRaggedCall& c) {
  return {"out", c.out};
}
std::pair<std::string_view, const TensorMeta&> output_of(const LegacyExtendCall& c) {
  return {"o_extend", c.o_extend};
}

std::pair<std::string_view, const TensorMeta&> output_of(const VllmCpuCall& c) {
  return {"output", c.output};
}

template <class CallType>
std::pair<std::string_view, const TensorMeta&> query_of(const CallType& c) {
  return {"q", c.q};
}
std::pair<std::string_view, const TensorMeta&> query_of(const PagedRaggedCall& c) {
  return {"query", c.query};
}
std::pair<std::string_view, const TensorMeta&> query_of(const LegacyExtendCall& c) {
  return {"q_extend", c.q_extend};
}

std::pair<std::string_view, const TensorMeta&> query_of(const VllmCpuCall& c) {
  return {"query", c.query};
}

template <class CallType>
void q_holds_every_token(const CallType& call, const Truth& truth, Report& report) {
  const auto [name, q] = query_of(call);
  const std::int64_t needed = truth.problem.total_new_tokens();
  if (q.size(0) >= needed) return;
  report.add(std::string(name) + ".shape[0]", std::to_string(q.size(0)),
             std::to_string(needed) + " = the new tokens of all requests");
}

template <class CallType>
void out_holds_every_row(const CallType& call, const Truth&, Report& report) {
  const auto [name, out] = output_of(call);
  const std::int64_t rows = query_of(call).second.size(0);
  if (out.size(0) >= rows) return;
  report.add(std::string(name) + ".shape[0]", std::to_string(out.size(0)),
             std::to_string(rows) + ", one per row of q");
}

void new_keys_have_every_row(const LegacyExtendCall& call, const Truth& truth, Report& report) {
  const std::int64_t needed = truth.problem.total_new_tokens();
  for (const auto& [name, rows] :
       {std::pair<std::string_view, std::int64_t>("k_extend", call.k_extend.size(0)),
        {"v_extend", call.v_extend.size(0)}}) {
    if (rows >= needed) continue;
    report.add(std::string(name) + ".shape[0]", std::to_string(rows),
               std::to_string(needed) + ", one per new token");
  }
}

/// Rows and heads of a (rows, heads, dim) tensor never share a byte: one of the two dimensions
/// steps over everything the other one spans.
bool rows_are_apart(const TensorMeta& t) {
  const std::int64_t rows = t.size(0);
  const std::int64_t heads = t.size(1);
  const std::int64_t dim = t.size(2);
  const auto apart = [dim](std::int64_t inner, std::int64_t inner_stride, std::int64_t outer,
                           std::int64_t outer_stride) {
    std::int64_t span = 0;
    if (inner > 1 && inner_stride < dim) return false;
    if (__builtin_mul_overflow(inner > 0 ? inner - 1 : 0, inner_stride, &span)) return false;
    return outer <= 1 || outer_stride - dim >= span;
  };
  return apart(heads, t.stride(1), rows, t.stride(0)) ||
         apart(rows, t.stride(0), heads, t.stride(1));
}

template <class CallType>
void out_rows_are_apart(const CallType& call, const Truth&, Report& report) {
  const auto [name, out] = output_of(call);
  if (rows_are_apart(out)) return;
  report.add(std::string(name) + ".strides", strides_text(out) + " for " + shape_text(out),
             "rows and heads that do not overlap");
}

template <class CallType>
void head_sizes_are_the_layers(const CallType& call, const Truth& truth, Report& report) {
  each_tensor(call, truth.problem.model,
              [&](std::string_view name, const TensorMeta& tensor, std::int64_t dim) {
                const std::int64_t got = tensor.shape.back();
                if (got == dim) return;
                report.add(std::string(name) + ".shape[-1]", std::to_string(got),
                           std::to_string(dim) + ", the layer's");
              });
}

void head_size_is_one(const UnifiedCall& call, const Truth& truth, Report& report) {
  if (call.q.size(2) == call.v.size(3)) return;
  report.add(truth.capabilities.distinct_v_head_dim ? Severity::policy : Severity::wrong,
             "v.shape[3]", std::to_string(call.v.size(3)),
             std::to_string(call.q.size(2)) + ", q's: AITER's kernel takes one head size");
}

template <class CallType>
void last_dimension_is_dense(const CallType& call, const Truth& truth, Report& report) {
  each_tensor(call, truth.problem.model,
              [&](std::string_view name, const TensorMeta& tensor, std::int64_t) {
                if (tensor.strides.back() == 1 || tensor.shape.back() <= 1) return;
                report.add(std::string(name) + ".stride(-1)", std::to_string(tensor.strides.back()),
                           "1");
              });
}

void q_is_contiguous(const MlaDecodeCall& call, const Truth&, Report& report) {
  std::int64_t dense = 1;
  for (std::size_t d = call.q.shape.size(); d-- > 0;) {
    if (call.q.shape[d] > 1 && call.q.strides[d] != dense) {
      report.add("q.strides", strides_text(call.q) + " for " + shape_text(call.q),
                 "stride " + std::to_string(dense) + " in dimension " + std::to_string(d) +
                     ", contiguous");
      return;
    }
    // Sizes next to a size of 0 may be anything.
    if (__builtin_mul_overflow(dense, call.q.shape[d], &dense)) return;
  }
}

constexpr Rule rules[] = {
    {.id = "q.holds_every_new_token",
     .says = "q has a row for every new token of the batch",
     .why = "the offsets then point past its end",
     .source = "sgl-project/sglang#36915",
     .severity = Severity::fault,
     .unified = q_holds_every_token<UnifiedCall>,
     .mla_decode = q_holds_every_token<MlaDecodeCall>,
     .batch_prefill = q_holds_every_token<BatchPrefillCall>,
     .paged_ragged = q_holds_every_token<PagedRaggedCall>,
     .legacy_extend = q_holds_every_token<LegacyExtendCall>,
     .vllm_cpu = q_holds_every_token<VllmCpuCall>},
    {.id = "out.holds_every_row",
     .says = "the output has a row for every row of q",
     .why = "rows are stored without a bounds check",
     .source = "sgl-project/sglang#19902",
     .severity = Severity::fault,
     .unified = out_holds_every_row<UnifiedCall>,
     .mla_decode = out_holds_every_row<MlaDecodeCall>,
     .paged_ragged = out_holds_every_row<PagedRaggedCall>,
     .legacy_extend = out_holds_every_row<LegacyExtendCall>,
     .vllm_cpu = out_holds_every_row<VllmCpuCall>},
    {.id = "k_extend.holds_every_new_token",
     .says = "k_extend and v_extend have a row for every new token of the batch",
     .why = "the new tokens' keys are read there by row, without a bounds check",
     .source = "sgl-project/sglang python/sglang/srt/layers/attention/triton_ops/"
               "extend_attention.py: K_Extend",
     .severity = Severity::fault,
     .legacy_extend = new_keys_have_every_row},
    {.id = "out.rows_do_not_overlap",
     .says = "no two (row, head) pairs of the output share bytes",
     .why = "whichever program stores last wins",
     .source = "sgl-project/sglang#38757",
     .unified = out_rows_are_apart<UnifiedCall>,
     .mla_decode = out_rows_are_apart<MlaDecodeCall>,
     .paged_ragged = out_rows_are_apart<PagedRaggedCall>,
     .legacy_extend = out_rows_are_apart<LegacyExtendCall>,
     .vllm_cpu = out_rows_are_apart<VllmCpuCall>},
    {.id = "head_dim.is_the_layers",
     .says = "the last dimension of q, k, v and out is the layer's head size",
     .why = "scores of cut or over-read heads are plausible and wrong",
     .source = "sgl-project/sglang#38757",
     .unified = head_sizes_are_the_layers<UnifiedCall>,
     .mla_decode = head_sizes_are_the_layers<MlaDecodeCall>,
     .batch_prefill = head_sizes_are_the_layers<BatchPrefillCall>,
     .paged_ragged = head_sizes_are_the_layers<PagedRaggedCall>,
     .legacy_extend = head_sizes_are_the_layers<LegacyExtendCall>,
     .vllm_cpu = head_sizes_are_the_layers<VllmCpuCall>},
    {.id = "head_dim.is_one_size",
     .says = "q, k and v have one head size",
     .why = "AITER's kernel strides v and out by q's: v is over-read and rows of out overlap; "
            "policy for kernels that take both sizes",
     .source = "sgl-project/sglang#38757",
     .unified = head_size_is_one},
    {.id = "layout.last_dimension_is_dense",
     .says = "the last stride of q, k, v and out is 1",
     .why = "kernels assume it and read every n-th neighbour instead",
     .source = "ROCm/aiter#3498",
     .unified = last_dimension_is_dense<UnifiedCall>,
     .mla_decode = last_dimension_is_dense<MlaDecodeCall>,
     .batch_prefill = last_dimension_is_dense<BatchPrefillCall>,
     .paged_ragged = last_dimension_is_dense<PagedRaggedCall>,
     .legacy_extend = last_dimension_is_dense<LegacyExtendCall>,
     .vllm_cpu = last_dimension_is_dense<VllmCpuCall>},
    {.id = "layout.q_is_contiguous",
     .says = "an MLA call's q is contiguous",
     .why = "the kernel folds rows and heads into one dimension by arithmetic",
     .source = "ROCm/aiter aiter/mla.py: mla_decode_fwd",
     .mla_decode = q_is_contiguous},
};

}  // namespace

std::span<const Rule> strides_and_layout_rules() { return rules; }

}  // namespace attest
