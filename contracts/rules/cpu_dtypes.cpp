#include "contracts/rules/cpu_dtypes.hpp"

#include <optional>
#include <string>

#include "contracts/rules/finding_text.hpp"

namespace attest {
namespace {

void is_dtype(std::string_view array, Dtype got, Dtype wanted, Report& report) {
  if (got == wanted) return;
  report.add(std::string(array), std::string(name(got)), std::string(name(wanted)));
}

void is_dtype(std::string_view array, const std::optional<TensorMeta>& t, Dtype wanted,
              Report& report) {
  if (t) is_dtype(array, t->dtype, wanted, report);
}

template <class CallType>
void lengths_are_int64(const CallType& c, const Truth&, Report& report) {
  is_dtype("seq_lens", c.seq_lens.meta.dtype, Dtype::int64, report);
  is_dtype("req_pool_indices", c.req_pool_indices.meta.dtype, Dtype::int64, report);
  if (c.encoder_lens) {
    is_dtype("encoder_lens", c.encoder_lens->meta.dtype, Dtype::int64, report);
  }
}

void decode_lengths_are_int64(const DecodeCall& c, const Truth& truth, Report& report) {
  lengths_are_int64(c, truth, report);
  if (c.key) is_dtype("loc", c.loc.meta.dtype, Dtype::int64, report);
}

template <class CallType>
void table_is_integer(const CallType& c, const Truth&, Report& report) {
  const Dtype dtype = c.req_to_token.meta.dtype;
  if (dtype == Dtype::int32 || dtype == Dtype::int64) return;
  report.add("req_to_token", std::string(name(dtype)), "int32 or int64");
}

void lens_have_the_tables_dtype(const ExtendCall& c, const Truth&, Report& report) {
  const Dtype wanted = c.req_to_token.meta.dtype;
  is_dtype("extend_seq_lens", c.extend_seq_lens.meta.dtype, wanted, report);
  is_dtype("extend_start_loc", c.extend_start_loc.meta.dtype, wanted, report);
}

void extend_has_qs_dtype(const ExtendCall& c, const Truth&, Report& report) {
  const Dtype q = c.q_extend.dtype;
  is_dtype("k_buffer", c.k_buffer.dtype, q, report);
  is_dtype("v_buffer", c.v_buffer.dtype, q, report);
  is_dtype("o_extend", c.o_extend.dtype, q, report);
  is_dtype("k_extend", c.k_extend, q, report);
  is_dtype("v_extend", c.v_extend, q, report);
  is_dtype("sinks", c.sinks, q, report);
}

void decode_has_qs_dtype(const DecodeCall& c, const Truth&, Report& report) {
  const Dtype q = c.query.dtype;
  is_dtype("k_buffer", c.k_buffer.dtype, q, report);
  is_dtype("v_buffer", c.v_buffer.dtype, q, report);
  is_dtype("output", c.output.dtype, q, report);
  is_dtype("key", c.key, q, report);
  is_dtype("value", c.value, q, report);
  is_dtype("sinks", c.sinks, q, report);
}

void mask_is_bool(const ExtendCall& c, const Truth&, Report& report) {
  if (!c.tree_mask) return;
  const TensorMeta& m = c.tree_mask->meta;
  is_dtype("tree_mask", m.dtype, Dtype::boolean, report);
  if (m.strides == contiguous(m.dtype, m.shape).strides) return;
  report.add("tree_mask", "a strided view", "contiguous");
}

constexpr Rule rules[] = {
    {.id = "seq_lens.is_int64",
     .says = "seq_lens, req_pool_indices, encoder_lens and loc are int64",
     .why = "the kernels check and raise: a framework that builds them as int32 fails at the first "
            "call",
     .source = "sgl-project/sglang#24013 (added the cast)",
     .severity = Severity::fault,
     .extend = lengths_are_int64<ExtendCall>,
     .decode = decode_lengths_are_int64},
    {.id = "req_to_token.is_int32_or_int64",
     .says = "req_to_token is int32 or int64",
     .why = "the kernels are compiled for these two and raise for others",
     .source = "sgl-project/sglang sgl-kernel/csrc/cpu/extend.cpp, index_dtype",
     .severity = Severity::fault,
     .extend = table_is_integer<ExtendCall>,
     .decode = table_is_integer<DecodeCall>},
    {.id = "extend_seq_lens.has_the_tables_dtype",
     .says = "extend_seq_lens and extend_start_loc have req_to_token's dtype",
     .why = "one index type serves all three; the kernel raises on a mix",
     .source = "sgl-project/sglang sgl-kernel/csrc/cpu/extend.cpp, index_dtype",
     .severity = Severity::fault,
     .extend = lens_have_the_tables_dtype},
    {.id = "k_buffer.has_qs_dtype",
     .says = "pools, new keys and values, output and sinks have q's dtype",
     .why = "the kernel reads all of them through one element type",
     .source = "sgl-project/sglang sgl-kernel/csrc/cpu/extend.cpp, data_ptr<scalar_t>",
     .severity = Severity::fault,
     .extend = extend_has_qs_dtype,
     .decode = decode_has_qs_dtype},
    {.id = "tree_mask.is_a_contiguous_bool",
     .says = "tree_mask is bool and contiguous",
     .why = "the kernel reads it as one byte an entry and refuses anything else",
     .source = "sgl-project/sglang sgl-kernel/csrc/cpu/extend.cpp, tree_mask",
     .severity = Severity::fault,
     .extend = mask_is_bool},
};

}  // namespace

std::span<const Rule> cpu_dtypes_rules() { return rules; }

}  // namespace attest
