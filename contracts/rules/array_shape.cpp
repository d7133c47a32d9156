#include "contracts/rules/array_shape.hpp"

#include <optional>
#include <string>

#include "contracts/rules/finding_text.hpp"
#include "contracts/work_lists.hpp"

namespace attest {
namespace {

// Generous: no tensor of one layer reaches them, and products of two stay inside 63 bits.
constexpr std::size_t max_rank = 8;
constexpr std::int64_t max_extent = std::int64_t{1} << 40;
constexpr std::int64_t max_elements = std::int64_t{1} << 50;

/// Calls f(name, array) for every metadata array of the call, g(name, tensor) for every tensor.
template <class F, class G>
void visit(const UnifiedCall& c, F f, G g) {
  f("cu_seqlens_q", &c.cu_seqlens_q);
  f("seqused_k", &c.seqused_k);
  f("block_table", &c.block_table);
  g("q", &c.q), g("k", &c.k), g("v", &c.v), g("out", &c.out);
  g("q_descale", c.q_descale), g("k_descale", c.k_descale), g("v_descale", c.v_descale);
  g("sinks", c.sinks), g("qq_bias", c.qq_bias);
}

template <class F, class G>
void visit(const ExtendCall& c, F f, G g) {
  f("req_to_token", &c.req_to_token), f("req_pool_indices", &c.req_pool_indices);
  f("seq_lens", &c.seq_lens), f("extend_seq_lens", &c.extend_seq_lens);
  f("extend_start_loc", &c.extend_start_loc), f("encoder_lens", c.encoder_lens);
  f("tree_mask", c.tree_mask);
  g("q_extend", &c.q_extend), g("k_extend", c.k_extend), g("v_extend", c.v_extend);
  g("o_extend", &c.o_extend), g("k_buffer", &c.k_buffer), g("v_buffer", &c.v_buffer);
  g("sinks", c.sinks);
}

template <class F, class G>
void visit(const DecodeCall& c, F f, G g) {
  f("loc", &c.loc), f("req_to_token", &c.req_to_token);
  f("req_pool_indices", &c.req_pool_indices), f("seq_lens", &c.seq_lens);
  f("encoder_lens", c.encoder_lens);
  g("query", &c.query), g("k_buffer", &c.k_buffer), g("v_buffer", &c.v_buffer);
  g("output", &c.output), g("key", c.key), g("value", c.value);
  g("attn_logits", &c.attn_logits), g("sinks", c.sinks);
}

template <class F, class G>
void visit(const MlaDecodeCall& c, F f, G g) {
  f("qo_indptr", &c.qo_indptr), f("kv_indptr", &c.kv_indptr), f("kv_indices", &c.kv_indices);
  f("kv_last_page_lens", &c.kv_last_page_lens);
  for (const auto& [name, array] : named_work_lists(c)) f(name, array);
  g("q", &c.q), g("kv_buffer", &c.kv_buffer), g("o", &c.o);
  g("q_scale", c.q_scale), g("kv_scale", c.kv_scale);
}

template <class F, class G>
void visit(const BatchPrefillCall& c, F f, G g) {
  f("cu_seqlens_q", &c.cu_seqlens_q), f("kv_indptr", &c.kv_indptr);
  f("kv_page_indices", &c.kv_page_indices);
  g("q", &c.q), g("k", &c.k), g("v", &c.v), g("sink_ptr", c.sink_ptr);
  g("q_descale", c.q_descale), g("k_descale", c.k_descale), g("v_descale", c.v_descale);
}

template <class F, class G>
void visit(const PagedRaggedCall& c, F f, G g) {
  f("kv_indptr", &c.kv_indptr), f("kv_page_indices", &c.kv_page_indices);
  f("kv_last_page_lens", &c.kv_last_page_lens);
  g("out", &c.out), g("workspace_buffer", &c.workspace_buffer), g("query", &c.query);
  g("key_cache", &c.key_cache), g("value_cache", &c.value_cache);
  g("k_scale", c.k_scale), g("v_scale", c.v_scale);
}

template <class F, class G>
void visit(const LegacyExtendCall& c, F f, G g) {
  f("qo_indptr", &c.qo_indptr), f("kv_indptr", &c.kv_indptr), f("kv_indices", &c.kv_indices);
  f("custom_mask", c.custom_mask), f("mask_indptr", c.mask_indptr);
  g("q_extend", &c.q_extend), g("k_extend", &c.k_extend), g("v_extend", &c.v_extend);
  g("o_extend", &c.o_extend), g("k_buffer", &c.k_buffer), g("v_buffer", &c.v_buffer);
  g("sinks", c.sinks);
}

template <class F, class G>
void visit(const VllmCpuCall& c, F f, G g) {
  f("query_start_loc", &c.query_start_loc), f("seq_lens", &c.seq_lens);
  f("block_table", &c.block_table);
  g("query", &c.query), g("key_cache", &c.key_cache), g("value_cache", &c.value_cache);
  g("output", &c.output), g("s_aux", c.s_aux);
}

/// Pointer to the value of a present optional, to the object itself otherwise.
template <class T>
const T* present(const T* object) {
  return object;
}
template <class T>
const T* present(const std::optional<T>& object) {
  return object ? &*object : nullptr;
}

void check_values(std::string_view array, const IntArray& a, Report& report) {
  if (!a.recorded || a.numel() == static_cast<std::int64_t>(a.values.size())) return;
  report.add(std::string(array), std::to_string(a.values.size()) + " values",
             "one value per entry of its shape " + shape_text(a.meta));
}

bool check_sizes(std::string_view tensor, const TensorMeta& t, Report& report) {
  if (t.shape.size() > max_rank || t.strides.size() != t.shape.size()) {
    report.add(std::string(tensor),
               std::to_string(t.shape.size()) + " sizes and " + std::to_string(t.strides.size()) +
                   " strides",
               "as many strides as sizes, at most 8");
    return false;
  }
  std::int64_t elements = 1;
  for (std::size_t d = 0; d < t.shape.size(); ++d) {
    const bool sane = t.shape[d] >= 0 && t.shape[d] <= max_extent && t.strides[d] >= 0 &&
                      t.strides[d] <= max_elements &&
                      !__builtin_mul_overflow(elements, t.shape[d], &elements) &&
                      elements <= max_elements;
    if (sane) continue;
    report.add(std::string(tensor),
               shape_text(t) + " with stride " + std::to_string(t.strides[d]) + " in dimension " +
                   std::to_string(d),
               "sizes in [0, 2^40], strides in [0, 2^50], at most 2^50 elements");
    return false;
  }
  return true;
}

template <class CallType>
void sizes_are_sane(const CallType& call, const Truth&, Report& report) {
  visit(
      call,
      [&](std::string_view array, const auto& a) {
        if (const IntArray* values = present(a)) {
          if (check_sizes(array, values->meta, report)) check_values(array, *values, report);
        }
      },
      [&](std::string_view tensor, const auto& t) {
        if (const TensorMeta* meta = present(t)) check_sizes(tensor, *meta, report);
      });
}

constexpr Rule rules[] = {
    {.id = "tensor.sizes_are_sane",
     .says =
         "sizes and strides are non-negative, one stride per size, products fit in 63 bits, and "
         "metadata arrays hold one value per entry",
     .why = "no tensor looks like that: the capture is damaged or offsets overflow, and whoever "
            "reads by shape reads past the end",
     .source = "PyTorch c10/core/TensorImpl.h: sizes, strides and numel of a strided tensor",
     .severity = Severity::fault,
     .unified = sizes_are_sane<UnifiedCall>,
     .extend = sizes_are_sane<ExtendCall>,
     .decode = sizes_are_sane<DecodeCall>,
     .mla_decode = sizes_are_sane<MlaDecodeCall>,
     .batch_prefill = sizes_are_sane<BatchPrefillCall>,
     .paged_ragged = sizes_are_sane<PagedRaggedCall>,
     .legacy_extend = sizes_are_sane<LegacyExtendCall>,
     .vllm_cpu = sizes_are_sane<VllmCpuCall>},
};

}  // namespace

std::span<const Rule> array_shape_rules() { return rules; }

}  // namespace attest
