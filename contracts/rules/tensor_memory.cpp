#include "contracts/rules/tensor_memory.hpp"

#include <string>

#include "contracts/byte_overlap.hpp"
#include "contracts/rules/call_tensors.hpp"
#include "contracts/rules/finding_text.hpp"

namespace attest {
namespace {

using enum TensorRole;

template <class CallType>
void lies_inside_its_storage(const CallType& call, const Truth&, Report& report) {
  for (const NamedTensor& t : tensors_of(call)) {
    const std::int64_t span = spanned_elements(*t.meta);
    const auto size = static_cast<std::int64_t>(size_bytes(t.meta->dtype));
    const std::int64_t held = t.meta->storage_bytes / size;
    if (span == 0 || (t.meta->storage_offset >= 0 && span <= held - t.meta->storage_offset)) {
      continue;
    }
    report.add(std::string(t.name),
               std::to_string(span) + " elements from " + std::to_string(t.meta->storage_offset),
               "elements inside its storage of " + std::to_string(t.meta->storage_bytes) +
                   " bytes, " + std::to_string(held) + " elements");
  }
}

/// One head that a framework shows as many is right where the layer has one kv head.
TensorMeta without_expansion(TensorMeta pool) {
  const std::size_t head = pool.shape.size() - 2;
  if (pool.shape.size() >= 2 && pool.strides[head] == 0) pool.shape[head] = 1;
  return pool;
}

template <class CallType>
void rows_do_not_overlap(const CallType& call, const Truth& truth, Report& report) {
  const bool one_kv_head = truth.problem.model.num_kv_heads == 1;
  for (const NamedTensor& t : tensors_of(call)) {
    const bool kv = t.role == key || t.role == value;
    if (!kv && t.role != query) continue;
    const TensorMeta judged = kv && one_kv_head ? without_expansion(*t.meta) : *t.meta;
    if (!overlaps_itself(judged)) continue;
    report.add(std::string(t.name) + ".strides",
               strides_text(*t.meta) + " for " + shape_text(*t.meta),
               "rows and heads that share no byte");
  }
}

bool is_input(TensorRole role) { return role == query || role == key || role == value; }

template <class CallType>
void inputs_are_apart(const CallType& call, const Truth& truth, Report& report) {
  const std::vector<NamedTensor> tensors = tensors_of(call);
  for (std::size_t j = 0; j < tensors.size(); ++j) {
    for (std::size_t i = 0; i < j; ++i) {
      const NamedTensor &a = tensors[i], &b = tensors[j];
      // New keys may lie in the pool already, and an MLA layer's values are its keys.
      const bool latent = truth.problem.model.mla && a.role != query && b.role != query;
      if (!is_input(a.role) || !is_input(b.role) || a.role == b.role || latent) continue;
      if (!share_bytes(*a.meta, *b.meta)) continue;
      report.add(std::string(b.name), "memory of " + std::string(a.name), "memory of its own");
    }
  }
}

template <class CallType>
void outputs_are_apart(const CallType& call, const Truth&, Report& report) {
  const std::vector<NamedTensor> tensors = tensors_of(call);
  for (std::size_t j = 0; j < tensors.size(); ++j) {
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const NamedTensor &written = tensors[j], &other = tensors[i];
      const bool twice = other.role == output && i >= j;
      if (written.role != output || twice || !share_bytes(*written.meta, *other.meta)) continue;
      report.add(std::string(written.name), "memory of " + std::string(other.name),
                 "memory that nothing else of the call lies in");
    }
  }
}

template <class CallType>
void values_begin_the_keys_rows(const CallType& call, const Truth& truth, Report& report) {
  const TensorMeta &k = call.k_buffer, &v = call.v_buffer;
  if (!truth.problem.model.mla || !share_bytes(k, v)) return;
  const bool same_rows = k.size(0) <= 1 || k.stride(0) == v.stride(0);
  if (same_rows && k.storage_offset == v.storage_offset) return;
  report.add("v_buffer",
             "rows of stride " + std::to_string(v.stride(0)) + " from element " +
                 std::to_string(v.storage_offset),
             "k_buffer's, of stride " + std::to_string(k.stride(0)) + " from element " +
                 std::to_string(k.storage_offset));
}

constexpr Rule rules[] = {
    {.id = "tensor.lies_inside_its_storage",
     .says = "offset, sizes and strides of a tensor stay inside its storage",
     .why = "nothing is checked behind the view: the kernel reads or writes another allocation",
     .source = "PyTorch aten/src/ATen/native/Resize.h, checkInBoundsForStorage",
     .severity = Severity::fault,
     .unified = lies_inside_its_storage<UnifiedCall>,
     .extend = lies_inside_its_storage<ExtendCall>,
     .decode = lies_inside_its_storage<DecodeCall>,
     .mla_decode = lies_inside_its_storage<MlaDecodeCall>,
     .batch_prefill = lies_inside_its_storage<BatchPrefillCall>,
     .paged_ragged = lies_inside_its_storage<PagedRaggedCall>,
     .legacy_extend = lies_inside_its_storage<LegacyExtendCall>,
     .vllm_cpu = lies_inside_its_storage<VllmCpuCall>},
    {.id = "tensor.rows_do_not_overlap",
     .says = "rows and heads of q, k and v share no byte; one kv head may be expanded",
     .why = "an expanded or overlapping view holds one row's numbers where the layer has several",
     .source = "PyTorch c10/core/TensorImpl.h, is_non_overlapping_and_dense; "
               "sgl-project/sglang#30105 (expanded heads)",
     .unified = rows_do_not_overlap<UnifiedCall>,
     .extend = rows_do_not_overlap<ExtendCall>,
     .decode = rows_do_not_overlap<DecodeCall>,
     .mla_decode = rows_do_not_overlap<MlaDecodeCall>,
     .batch_prefill = rows_do_not_overlap<BatchPrefillCall>,
     .paged_ragged = rows_do_not_overlap<PagedRaggedCall>,
     .legacy_extend = rows_do_not_overlap<LegacyExtendCall>,
     .vllm_cpu = rows_do_not_overlap<VllmCpuCall>},
    {.id = "tensor.has_memory_of_its_own",
     .says = "q, K and V share no byte with one another; an MLA layer's V is part of its K",
     .why = "V handed over as K attends with the right weights to the wrong numbers, and all "
            "shapes fit",
     .source = "sgl-project/sglang sgl-kernel/csrc/cpu/decode.cpp: one data pointer for K and V "
               "means MLA",
     .unified = inputs_are_apart<UnifiedCall>,
     .extend = inputs_are_apart<ExtendCall>,
     .decode = inputs_are_apart<DecodeCall>,
     .mla_decode = inputs_are_apart<MlaDecodeCall>,
     .batch_prefill = inputs_are_apart<BatchPrefillCall>,
     .paged_ragged = inputs_are_apart<PagedRaggedCall>,
     .legacy_extend = inputs_are_apart<LegacyExtendCall>,
     .vllm_cpu = inputs_are_apart<VllmCpuCall>},
    {.id = "out.overlaps_no_input",
     .says = "the output, and decode's scratch, share no byte with another tensor of the call",
     .why = "rows are stored while other rows are still reading q, the pools and the tables",
     .source = "PyTorch aten/src/ATen/MemoryOverlap.h, assert_no_overlap",
     .unified = outputs_are_apart<UnifiedCall>,
     .extend = outputs_are_apart<ExtendCall>,
     .decode = outputs_are_apart<DecodeCall>,
     .mla_decode = outputs_are_apart<MlaDecodeCall>,
     .paged_ragged = outputs_are_apart<PagedRaggedCall>,
     .legacy_extend = outputs_are_apart<LegacyExtendCall>,
     .vllm_cpu = outputs_are_apart<VllmCpuCall>},
    {.id = "v_buffer.begins_ks_rows",
     .says = "where an MLA layer's v_buffer is a view of k_buffer, both have the same rows",
     .why = "decode's MLA path reads K and V by k_buffer's stride alone, extend each by its own: "
            "one of the two is wrong about the pool",
     .source =
         "sgl-project/sglang sgl-kernel/csrc/cpu/decode.cpp, decode_attention_mla_kernel_impl",
     .extend = values_begin_the_keys_rows<ExtendCall>,
     .decode = values_begin_the_keys_rows<DecodeCall>},
};

}  // namespace

std::span<const Rule> tensor_memory_rules() { return rules; }

}  // namespace attest
