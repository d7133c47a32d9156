// Bugs of where a key, a value or a table entry lies.

#include "property_tests/mutants/handed_bugs.hpp"

namespace attest {
namespace {

using enum BugClass;
using enum Site;

// One row each: id, source, what goes wrong, class, site, kernels, what stands for it, why not
// numbers.
constexpr HandedBug rows[] = {
    {"aiter-2517-srd-size", "ROCm/aiter#2517",
     "a buffer descriptor's size is a 32-bit product, so loads behind its remainder read zeros",
     numeric, kernel_address, "unified, mla_decode", "faulty-descriptor_size_in_32_bits", ""},
    {"aiter-4774-zero-logits", "ROCm/aiter#4774",
     "keys whose byte offset reaches 2^31 read as zeros", numeric, kernel_address, "unified",
     "faulty-zeros_past_2_gib, faulty-hip_far_keys_read_zero", ""},
    {"sgl-20389-qo-indptr", "sgl-project/sglang#20389",
     "the row offset of q and out is a 32-bit product of a token number and a row length",
     rule_only, kernel_address, "extend", "rule:offset.fits_int32",
     "a wrong row needs q and out of 4 GiB each, which no case here has"},
    {"sgl-36541-seqused-i32", "sgl-project/sglang#36541",
     "offsets of keys take the dtype of seqused_k, and int32 wraps past 2 GiB", numeric,
     kernel_address, "unified", "faulty-byte_offset_in_seqused_dtype, metadata:seqused_k_int32",
     ""},
    {"sgl-40351-store-page", "sgl-project/sglang#40351",
     "a new key is stored at a 32-bit offset, so a high slot's lands elsewhere", numeric,
     kernel_address, "decode", "faulty-store_offset_in_int32, faulty-stores_at_next_slot", ""},
    {"syv-86-verify-split", "syv-ai/qwen38-27b-rtx3090#86",
     "page number times page stride is an int32 product in a split-KV verify kernel", numeric,
     kernel_address, "HIP unified", "faulty-wrap-page_product_int32.unified@host", ""},
    {"vllm-47671-mla-page-mul", "vllm-project/vllm#47671",
     "page number times page stride is an int32 product in MLA decode", numeric, kernel_address,
     "mla_decode", "faulty-wrap-page_product_int32.mla_decode@cpu", ""},
    {"fi-1654-lastpage-i64", "flashinfer-ai/flashinfer#1654",
     "an int64 array is read through an int32 pointer: every second entry is a zero", numeric,
     wrapper, "mla_decode", "faulty-int64_offsets_read_as_int32, metadata:mla_kv_indptr_int64", ""},
    {"aiter-3498-contig", "ROCm/aiter#3498",
     "a page is taken to be page_size slots long, whatever the cache's stride", numeric,
     kernel_address, "HIP unified", "faulty-hip_page_stride_assumed", ""},
    {"ck-1649-table-oob", "ROCm/composable_kernel#1649",
     "the last tile looks up pages that the request's table row does not have", numeric,
     kernel_address, "unified", "faulty-table_read_to_the_tiles_end", ""},
    {"sgl-25556-mla-page", "sgl-project/sglang#25556",
     "entries that are token slots are multiplied by a page size all the same", numeric, metadata,
     "mla_decode", "metadata:mla_page_size_of_pool", ""},
    {"sgl-27360-scatter-oob", "sgl-project/sglang#27360",
     "page ids of later draft steps are written past a row's columns, into the next row", numeric,
     metadata, "unified", "metadata:block_table_spills_into_next_row", ""},
    {"sgl-35985-context-wall", "sgl-project/sglang#35985",
     "the table is as wide as the context limit and has no column for the drafts", numeric, graph,
     "unified", "metadata:block_table_without_draft_slack", ""},
    {"tgi-2711-slots", "huggingface/text-generation-inference#2711",
     "draft slots are taken to follow the current one, whatever was allocated", numeric, metadata,
     "extend, decode", "metadata:draft_slots_assumed_consecutive", ""},
    {"onednn-5717-ktail", "uxlfoundation/oneDNN#5717",
     "the tail of a row of P is the next row's data and meets zeros, so a NaN there spreads",
     numeric, kernel_math, "AMX",
     "faulty-scratch_of_the_last_item, test:Nan.InOneRequestsValuesStaysInItsRows",
     "NaN must stand in a tensor that a right call reads, which no recipe does; a test of the AMX "
     "kernel puts one there"},
    {"vllm-45466-out-align", "vllm-project/vllm#45466",
     "a vector store goes to the multiple of 16 bytes below an unaligned slot", numeric,
     kernel_address, "decode", "faulty-store_rounded_to_16_bytes", ""},
};

}  // namespace

std::span<const HandedBug> bugs_of_addresses() { return rows; }

}  // namespace attest
