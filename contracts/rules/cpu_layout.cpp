#include "contracts/rules/cpu_layout.hpp"

#include <string>

#include "contracts/rules/finding_text.hpp"
#include "contracts/signatures/cpu_kernels.hpp"

namespace attest {
namespace {

void output_is_dense(Severity severity, std::string_view name, const TensorMeta& t,
                     Report& report) {
  const std::vector<std::int64_t> dense = contiguous(t.dtype, t.shape).strides;
  for (std::size_t d = 0; d < t.shape.size(); ++d) {
    if (t.shape[d] == 1 || t.strides[d] == dense[d]) continue;
    TensorMeta wanted = t;
    wanted.strides = dense;
    report.add(severity, std::string(name), "strides " + strides_text(t),
               "strides " + strides_text(wanted));
    return;
  }
}

void extend_output(const ExtendCall& c, const Truth&, Report& report) {
  output_is_dense(Severity::fault, "o_extend", c.o_extend, report);
}

void decode_output(const DecodeCall& c, const Truth&, Report& report) {
  output_is_dense(Severity::wrong, "output", c.output, report);
}

void vllm_output(const VllmCpuCall& c, const Truth&, Report& report) {
  output_is_dense(Severity::wrong, "output", c.output, report);
}

void last_dim_is_dense(std::string_view name, const TensorMeta& t, Report& report) {
  if (t.size(2) <= 1 || t.stride(2) == 1) return;
  report.add(std::string(name), "strides " + strides_text(t), "a last stride of 1");
}

void extend_last_dims(const ExtendCall& c, const Truth&, Report& report) {
  last_dim_is_dense("q_extend", c.q_extend, report);
  if (c.k_extend) last_dim_is_dense("k_extend", *c.k_extend, report);
  if (c.v_extend) last_dim_is_dense("v_extend", *c.v_extend, report);
  last_dim_is_dense("k_buffer", c.k_buffer, report);
  last_dim_is_dense("v_buffer", c.v_buffer, report);
}

void decode_last_dims(const DecodeCall& c, const Truth&, Report& report) {
  last_dim_is_dense("query", c.query, report);
  if (c.key) last_dim_is_dense("key", *c.key, report);
  if (c.value) last_dim_is_dense("value", *c.value, report);
  last_dim_is_dense("k_buffer", c.k_buffer, report);
  last_dim_is_dense("v_buffer", c.v_buffer, report);
}

template <class CallType>
void heads_are_not_expanded(const CallType& c, const Truth&, Report& report) {
  for (const auto& [name, t] : {std::pair{"k_buffer", &c.k_buffer}, {"v_buffer", &c.v_buffer}}) {
    if (t->size(1) <= 1 || t->stride(1) != 0) continue;
    report.add(name, std::to_string(t->size(1)) + " heads of stride 0", "the one kv head it holds");
  }
}

void mla_is_one_storage(const DecodeCall& c, const Truth& truth, Report& report) {
  const bool known = !c.k_buffer.storage.empty() && !c.v_buffer.storage.empty();
  const bool one_head = truth.problem.model.num_q_heads == 1;
  const bool has_path = truth.problem.model.head_dim == truth.problem.model.v_head_dim + 64;
  if (takes_mla_path(c) && c.k_buffer.stride(0) != c.v_buffer.stride(0)) {
    report.add(Severity::wrong, "v_buffer.stride(0)", std::to_string(c.v_buffer.stride(0)),
               std::to_string(c.k_buffer.stride(0)) + ", k_buffer's: both are one row");
  }
  if (!truth.problem.model.mla || !known || one_head || !has_path || takes_mla_path(c)) return;
  report.add("v_buffer", "a tensor apart from k_buffer", "a view of k_buffer's rows");
}

constexpr Rule rules[] = {
    {.id = "output.is_contiguous",
     .says = "the output is contiguous",
     .why = "decode and vllm_cpu write rows as if it were and scramble a transposed output in "
            "silence; "
            "extend raises",
     .source = "sgl-project/sglang sgl-kernel/csrc/cpu/decode.cpp, output.data_ptr()",
     .severity = Severity::wrong,
     .extend = extend_output,
     .decode = decode_output,
     .vllm_cpu = vllm_output},
    {.id = "tensor.has_a_dense_last_dim",
     .says = "the head dimension of q, k, v and the pools has stride 1",
     .why = "the kernels load it as vectors and refuse anything else",
     .source = "sgl-project/sglang sgl-kernel/csrc/cpu, CHECK_LAST_DIM_CONTIGUOUS_INPUT",
     .severity = Severity::fault,
     .extend = extend_last_dims,
     .decode = decode_last_dims},
    {.id = "k_buffer.heads_are_not_expanded",
     .says = "the pools have the layer's kv heads, not one head expanded with stride 0",
     .why = "the kernel then loads the same K and V once for every query head",
     .source = "sgl-project/sglang#30105",
     .severity = Severity::slow,
     .extend = heads_are_not_expanded<ExtendCall>,
     .decode = heads_are_not_expanded<DecodeCall>},
    {.id = "v_buffer.shares_ks_storage",
     .says = "in an MLA layer v_buffer is a view of k_buffer's rows, with their stride",
     .why =
         "decode finds its MLA path by the shared data pointer; apart, the numbers are right and "
         "the latent rows are loaded twice; with another stride V is of another slot",
     .source = "sgl-project/sglang sgl-kernel/csrc/cpu/decode.cpp, decode_attention_cpu",
     .severity = Severity::slow,
     .decode = mla_is_one_storage},
};

}  // namespace

std::span<const Rule> cpu_layout_rules() { return rules; }

}  // namespace attest
