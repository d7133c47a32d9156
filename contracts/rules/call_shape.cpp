#include "contracts/rules/call_shape.hpp"

#include <string>

#include "contracts/rules/finding_text.hpp"

namespace attest {
namespace {

std::int64_t batch_of(const Truth& truth) {
  return static_cast<std::int64_t>(truth.problem.requests.size());
}

void expect_rank(std::string_view name, const TensorMeta& tensor, std::size_t rank,
                 std::string_view dimensions, Report& report) {
  if (tensor.shape.size() == rank) return;
  report.add(std::string(name) + ".shape", shape_text(tensor), std::string(dimensions));
}

void expect_rank(std::string_view name, const IntArray& array, std::size_t rank, Report& report) {
  expect_rank(name, array.meta, rank, rank == 1 ? "one dimension" : "two dimensions", report);
}

void ranks(const UnifiedCall& c, const Truth&, Report& report) {
  expect_rank("q", c.q, 3, "(total_q, num_q_heads, head_dim)", report);
  expect_rank("k", c.k, 4, "(num_pages, page_size, num_kv_heads, head_dim)", report);
  expect_rank("v", c.v, 4, "(num_pages, page_size, num_kv_heads, v_head_dim)", report);
  expect_rank("out", c.out, 3, "(total_q, num_q_heads, v_head_dim)", report);
  expect_rank("cu_seqlens_q", c.cu_seqlens_q, 1, report);
  expect_rank("seqused_k", c.seqused_k, 1, report);
  expect_rank("block_table", c.block_table, 2, report);
}

void ranks(const MlaDecodeCall& c, const Truth&, Report& report) {
  expect_rank("q", c.q, 3, "(total_q, num_q_heads, head_dim)", report);
  expect_rank("kv_buffer", c.kv_buffer, 4, "(num_pages, page_size, 1, head_dim)", report);
  expect_rank("o", c.o, 3, "(total_q, num_q_heads, v_head_dim)", report);
  expect_rank("qo_indptr", c.qo_indptr, 1, report);
  expect_rank("kv_indptr", c.kv_indptr, 1, report);
  expect_rank("kv_indices", c.kv_indices, 1, report);
  expect_rank("kv_last_page_lens", c.kv_last_page_lens, 1, report);
}

void ranks(const BatchPrefillCall& c, const Truth&, Report& report) {
  expect_rank("q", c.q, 3, "(total_q, num_q_heads, head_dim)", report);
  expect_rank("k", c.k, 3, "(num_slots, num_kv_heads, head_dim)", report);
  expect_rank("v", c.v, 3, "(num_slots, num_kv_heads, v_head_dim)", report);
  expect_rank("cu_seqlens_q", c.cu_seqlens_q, 1, report);
  expect_rank("kv_indptr", c.kv_indptr, 1, report);
  expect_rank("kv_page_indices", c.kv_page_indices, 1, report);
}

void ranks(const PagedRaggedCall& c, const Truth&, Report& report) {
  expect_rank("query", c.query, 3, "(batch, num_q_heads, head_dim)", report);
  expect_rank("out", c.out, 3, "(batch, num_q_heads, v_head_dim)", report);
  expect_rank("key_cache", c.key_cache, 4, "(num_pages, block_size, num_kv_heads, head_dim)",
              report);
  expect_rank("value_cache", c.value_cache, 4, "(num_pages, block_size, num_kv_heads, v_head_dim)",
              report);
  expect_rank("kv_indptr", c.kv_indptr, 1, report);
  expect_rank("kv_page_indices", c.kv_page_indices, 1, report);
  expect_rank("kv_last_page_lens", c.kv_last_page_lens, 1, report);
}

void ranks(const LegacyExtendCall& c, const Truth&, Report& report) {
  expect_rank("q_extend", c.q_extend, 3, "(total_q, num_q_heads, head_dim)", report);
  expect_rank("k_extend", c.k_extend, 3, "(total_q, num_kv_heads, head_dim)", report);
  expect_rank("v_extend", c.v_extend, 3, "(total_q, num_kv_heads, v_head_dim)", report);
  expect_rank("o_extend", c.o_extend, 3, "(total_q, num_q_heads, v_head_dim)", report);
  expect_rank("k_buffer", c.k_buffer, 3, "(num_slots, num_kv_heads, head_dim)", report);
  expect_rank("v_buffer", c.v_buffer, 3, "(num_slots, num_kv_heads, v_head_dim)", report);
  expect_rank("qo_indptr", c.qo_indptr, 1, report);
  expect_rank("kv_indptr", c.kv_indptr, 1, report);
  expect_rank("kv_indices", c.kv_indices, 1, report);
}

void ranks(const VllmCpuCall& c, const Truth&, Report& report) {
  expect_rank("query", c.query, 3, "(total_q, num_q_heads, head_dim)", report);
  constexpr std::string_view cache = "(num_blocks, num_kv_heads, block_size, head_dim)";
  expect_rank("key_cache", c.key_cache, 4, cache, report);
  expect_rank("value_cache", c.value_cache, 4, cache, report);
  expect_rank("output", c.output, 3, "(total_q, num_q_heads, head_dim)", report);
  expect_rank("query_start_loc", c.query_start_loc, 1, report);
  expect_rank("seq_lens", c.seq_lens, 1, report);
  expect_rank("block_table", c.block_table, 2, report);
}

/// `more` entries beyond the batch are allowed where the kernel takes the batch from elsewhere.
void expect_entries(std::string_view name, const IntArray& array, std::int64_t entries,
                    std::string_view of, bool more, Report& report) {
  const std::int64_t got = array.size(0);
  if (got == entries || (more && got > entries)) return;
  report.add(std::string(name) + ".shape[0]", std::to_string(got),
             std::to_string(entries) + std::string(of));
}

void one_offset_more_than_requests(const UnifiedCall& c, const Truth& t, Report& report) {
  expect_entries("cu_seqlens_q", c.cu_seqlens_q, batch_of(t) + 1, ", one more than requests",
                 /*more=*/true, report);
}

void one_offset_more_than_requests(const MlaDecodeCall& c, const Truth& t, Report& report) {
  expect_entries("qo_indptr", c.qo_indptr, batch_of(t) + 1, ", one more than requests",
                 /*more=*/false, report);
  expect_entries("kv_indptr", c.kv_indptr, batch_of(t) + 1, ", one more than requests",
                 /*more=*/true, report);
}

void one_offset_more_than_requests(const BatchPrefillCall& c, const Truth& t, Report& report) {
  expect_entries("cu_seqlens_q", c.cu_seqlens_q, batch_of(t) + 1, ", one more than requests",
                 /*more=*/false, report);
  expect_entries("kv_indptr", c.kv_indptr, batch_of(t) + 1, ", one more than requests",
                 /*more=*/true, report);
}

void one_offset_more_than_requests(const PagedRaggedCall& c, const Truth& t, Report& report) {
  // The kernel takes the number of rows from the query, not from here.
  expect_entries("kv_indptr", c.kv_indptr, batch_of(t) + 1, ", one more than requests",
                 /*more=*/true, report);
}

void one_offset_more_than_requests(const LegacyExtendCall& c, const Truth& t, Report& report) {
  expect_entries("qo_indptr", c.qo_indptr, batch_of(t) + 1, ", one more than requests",
                 /*more=*/false, report);
  expect_entries("kv_indptr", c.kv_indptr, batch_of(t) + 1, ", one more than requests",
                 /*more=*/true, report);
}

void one_offset_more_than_requests(const VllmCpuCall& c, const Truth& t, Report& report) {
  expect_entries("query_start_loc", c.query_start_loc, batch_of(t) + 1, ", one more than requests",
                 /*more=*/false, report);
}

void one_length_per_request(const UnifiedCall& c, const Truth& t, Report& report) {
  expect_entries("seqused_k", c.seqused_k, batch_of(t), ", one per request", /*more=*/false,
                 report);
}

void one_length_per_request(const MlaDecodeCall& c, const Truth& t, Report& report) {
  expect_entries("kv_last_page_lens", c.kv_last_page_lens, batch_of(t), ", one per request",
                 /*more=*/true, report);
}

void one_length_per_request(const PagedRaggedCall& c, const Truth& t, Report& report) {
  const std::int64_t got = c.kv_last_page_lens.size(0);
  if (got >= batch_of(t)) return;
  // The kernel of block size 1 is compiled without it.
  report.add(c.block_size > 1 ? Severity::fault : Severity::policy, "kv_last_page_lens.shape[0]",
             std::to_string(got), std::to_string(batch_of(t)) + ", one per request");
}

void one_length_per_request(const VllmCpuCall& c, const Truth& t, Report& report) {
  expect_entries("seq_lens", c.seq_lens, batch_of(t), ", one per request", /*more=*/false, report);
}

template <class CallType>
void a_row_per_request(const CallType& c, const Truth& t, Report& report) {
  if (c.block_table.size(0) >= batch_of(t) && c.block_table.size(1) >= 1) return;
  report.add("block_table.shape", shape_text(c.block_table.meta),
             std::to_string(batch_of(t)) + " rows or more, one column or more");
}

void pages_alike(const UnifiedCall& c, const Truth&, Report& report) {
  for (std::size_t d = 0; d < 3; ++d) {
    if (c.k.size(d) == c.v.size(d) && c.k.size(d) >= 1) continue;
    report.add("v.shape", shape_text(c.v),
               "k's pages, page size and heads, all at least 1: k is " + shape_text(c.k));
    return;
  }
}

void pages_alike(const MlaDecodeCall& c, const Truth&, Report& report) {
  if (c.kv_buffer.size(0) >= 1 && c.kv_buffer.size(1) == c.page_size && c.page_size >= 1) return;
  report.add("kv_buffer.shape", shape_text(c.kv_buffer),
             "one page or more of page_size = " + std::to_string(c.page_size) + " tokens");
}

void pages_alike(const PagedRaggedCall& c, const Truth&, Report& report) {
  for (std::size_t d = 0; d < 3; ++d) {
    const bool block = d != 1 || c.key_cache.size(1) == c.block_size;
    if (block && c.key_cache.size(d) == c.value_cache.size(d) && c.key_cache.size(d) >= 1) continue;
    report.add("key_cache.shape", shape_text(c.key_cache),
               "value_cache's pages, block size and heads, in pages of block_size = " +
                   std::to_string(c.block_size) + ": value_cache is " + shape_text(c.value_cache));
    return;
  }
}

void pages_alike(const LegacyExtendCall& c, const Truth&, Report& report) {
  for (std::size_t d = 0; d < 2; ++d) {
    if (c.k_buffer.size(d) == c.v_buffer.size(d) && c.k_buffer.size(d) >= 1) continue;
    report.add("v_buffer.shape", shape_text(c.v_buffer),
               "k_buffer's slots and heads, all at least 1: k_buffer is " + shape_text(c.k_buffer));
    return;
  }
}

void pages_alike(const VllmCpuCall& c, const Truth&, Report& report) {
  for (std::size_t d = 0; d < 3; ++d) {
    if (c.key_cache.size(d) == c.value_cache.size(d) && c.key_cache.size(d) >= 1) continue;
    report.add("value_cache.shape", shape_text(c.value_cache),
               "key_cache's blocks, heads and block size, all at least 1: key_cache is " +
                   shape_text(c.key_cache));
    return;
  }
}

void pages_alike(const BatchPrefillCall& c, const Truth&, Report& report) {
  for (std::size_t d = 0; d < 2; ++d) {
    if (c.k.size(d) == c.v.size(d) && c.k.size(d) >= 1) continue;
    report.add("v.shape", shape_text(c.v),
               "k's slots and heads, all at least 1: k is " + shape_text(c.k));
    return;
  }
}

constexpr Rule rules[] = {
    {.id = "tensors.have_their_rank",
     .says = "q and out have three dimensions, caches four (batch_prefill's and legacy_extend's "
             "three), the table two, other arrays one",
     .why = "the kernel takes sizes and strides by position",
     .source = "ROCm/aiter aiter/ops/triton/attention/unified_attention.py, aiter/mla.py",
     .severity = Severity::fault,
     .unified = ranks,
     .mla_decode = ranks,
     .batch_prefill = ranks,
     .paged_ragged = ranks,
     .legacy_extend = ranks,
     .vllm_cpu = ranks},
    {.id = "query_offsets.have_one_entry_more_than_requests",
     .says = "cu_seqlens_q and the indptr arrays have batch + 1 entries",
     .why = "entry i + 1 ends request i; a missing one is read past the array's end",
     .source = "ROCm/aiter aiter/ops/triton/attention/unified_attention.py: cu_seqlens_q",
     .severity = Severity::fault,
     .unified = one_offset_more_than_requests,
     .mla_decode = one_offset_more_than_requests,
     .batch_prefill = one_offset_more_than_requests,
     .paged_ragged = one_offset_more_than_requests,
     .legacy_extend = one_offset_more_than_requests,
     .vllm_cpu = one_offset_more_than_requests},
    {.id = "seqused_k.has_one_entry_per_request",
     .says = "seqused_k (kv_last_page_lens) has one entry per request",
     .why = "unified takes the batch size from it: missing requests are never computed",
     .source = "ROCm/aiter aiter/ops/triton/attention/unified_attention.py: len(seqused_k)",
     .severity = Severity::fault,
     .unified = one_length_per_request,
     .mla_decode = one_length_per_request,
     .paged_ragged = one_length_per_request,
     .vllm_cpu = one_length_per_request},
    {.id = "block_table.has_a_row_per_request",
     .says = "block_table has at least one row per request",
     .why = "rows are addressed by request without a bounds check",
     .source = "ROCm/aiter aiter/ops/triton/attention/unified_attention.py: block_table",
     .severity = Severity::fault,
     .unified = a_row_per_request<UnifiedCall>,
     .vllm_cpu = a_row_per_request<VllmCpuCall>},
    {.id = "cache.has_pages_of_the_page_size",
     .says = "K and V have the same pages, page size and heads; mla's buffer has page_size tokens",
     .why = "one set of sizes addresses both pools",
     .source = "sgl-project/sglang#25556",
     .severity = Severity::fault,
     .unified = pages_alike,
     .mla_decode = pages_alike,
     .batch_prefill = pages_alike,
     .paged_ragged = pages_alike,
     .legacy_extend = pages_alike,
     .vllm_cpu = pages_alike},
};

}  // namespace

std::span<const Rule> call_shape_rules() { return rules; }

}  // namespace attest
