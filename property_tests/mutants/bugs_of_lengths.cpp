// Bugs of how many keys and rows a request has, of padding and of captured graphs.

#include "property_tests/mutants/handed_bugs.hpp"

namespace attest {
namespace {

using enum BugClass;
using enum Site;

// One row each: id, source, what goes wrong, class, site, kernels, what stands for it, why not
// numbers.
constexpr HandedBug rows[] = {
    {"sgl-26512-fa-extent", "sgl-project/sglang#26512",
     "draft extend passes the length from before its tokens where the kernel wants the sum",
     numeric, metadata, "unified", "metadata:draft_extend_counts_the_prefix_only", ""},
    {"sgl-36430-amx-decode", "sgl-project/sglang#36430",
     "a draft decode step passes the batch's lengths, without the drafts of earlier steps", numeric,
     metadata, "decode", "metadata:draft_decode_without_step", ""},
    {"sgl-36430-amx-extend", "sgl-project/sglang#36430",
     "verify passes committed lengths, so the kernel's prefix has a hole of the draft count",
     numeric, metadata, "extend",
     "metadata:prefix_short_by_draft_count, faulty-prefix_short_by_new_tokens", ""},
    {"vllm-32312-stale-maxlen", "vllm-project/vllm#32312",
     "the bound of the walk over the keys is an earlier step's longest length", numeric, metadata,
     "HIP unified", "faulty-hip_bounded_by_the_maximum, faulty-graph_maximum_of_capture", ""},
    {"vllmascend-14883-rejected", "vllm-project/vllm-ascend#14883",
     "draft decode lengths still count drafts that verification rejected", numeric, metadata,
     "unified, decode", "metadata:rejected_drafts_still_counted", ""},
    {"livllm-233-frozen-qlen", "local-inference-lab/vllm#233",
     "a plan for one verify width is run on a batch of another", trace, graph, "unified",
     "step:lengths_of_the_captured_step", ""},
    {"sgl-27545-qo-stride", "sgl-project/sglang#27545",
     "query offsets are spaced by the number of draft steps, rows lie further apart", numeric,
     graph, "unified, extend",
     "metadata:qo_indptr_one_row_apart_too_little, metadata:start_loc_shifted", ""},
    {"sgl-31221-fixed-draft", "sgl-project/sglang#31221",
     "the verify width is the start-up constant, not the batch's", numeric, metadata, "unified",
     "metadata:verify_length_from_server_argument", ""},
    {"vllm-31693-nonuniform", "vllm-project/vllm#31693",
     "every request gets total rows over requests, though widths differ", numeric, launcher,
     "unified", "metadata:verify_length_from_total_over_batch, metadata:qo_indptr_equal_lengths",
     ""},
    {"fi-4016-pad-cta", "flashinfer-ai/flashinfer#4016",
     "blocks past the real work run on scheduler entries nobody set", relation, graph,
     "HIP unified", "faulty-graph_padding_offsets_stale", ""},
    {"sgl-25529-raw-loc", "sgl-project/sglang#25529",
     "padded lanes of a replay take slots past the raw list", relation, graph, "HIP unified",
     "faulty-graph_padding_takes_lane_0, metadata:loc_off_by_one", ""},
    {"vllm-27114-kernel-choice", "vllm-project/vllm#27114",
     "the graph holds one kernel, the metadata was laid out for another", relation, graph,
     "HIP unified", "faulty-graph_table_laid_out_by_the_batch", ""},
    {"vllm-53384-capture-grid", "vllm-project/vllm#53384",
     "the number of partitions is that of the capture, keys past them are dropped", relation, graph,
     "HIP unified", "faulty-graph_partitions_of_capture", ""},
    {"fi-1533-skip-write", "flashinfer-ai/flashinfer#1533",
     "rows that see no key are skipped, not zeroed", numeric, kernel_math, "HIP unified",
     "faulty-hip_rows_without_keys_not_written",
     "a row without a key comes only from lengths that a rule rejects; a test of the HIP kernel "
     "makes them"},
    {"hf-46765-trash-slot", "huggingface/transformers#46765",
     "padded tokens store their keys into a slot that rows read", rule_only, metadata, "decode",
     "rule:loc.leaves_live_keys_alone",
     "where a store goes is part of the call; the rule compares it with every live key"},
    {"sgl-22958-pad-stale", "sgl-project/sglang#22958",
     "padded lanes keep request rows and lengths of an earlier batch", relation, graph,
     "HIP unified",
     "faulty-graph_padding_lengths_stale, metadata:block_table_row_of_previous_request", ""},
    {"aiter-4964-fold", "ROCm/aiter#4964",
     "work lists were made for other query offsets than those that are passed", numeric, metadata,
     "mla_decode", "metadata:mla_works_of_one_row_less", ""},
    {"vllm-31282-lastpage", "vllm-project/vllm#31282",
     "the last page's length is the whole sequence's", rule_only, metadata, "mla_decode",
     "rule:kv_last_page_lens.fits_the_page, metadata:mla_last_page_len_of_sequence",
     "pages of one token, as the report has them, leave the value unread"},
    {"vllm-45227-meta-qlen1", "vllm-project/vllm#45227",
     "work for one query row is made, so later rows see what the first one does", numeric, metadata,
     "mla_decode",
     "metadata:mla_works_of_one_row, faulty-rows_end_with_the_first, "
     "metadata:mla_verify_length_configured",
     ""},
    {"aiter-2720-nonpow2", "ROCm/aiter#2720",
     "every row of a request gets the first one's output where their number is no power of two",
     numeric, kernel_math, "mla_decode", "faulty-first_row_repeated", ""},
    {"fi-4647-maxlen-bits", "flashinfer-ai/flashinfer#4647",
     "the number of splits, so the bits, follow a host argument", relation, launcher, "unified",
     "faulty-splits_from_max_seqlen_k", ""},
    {"llama-28108-width", "ggml-org/llama.cpp#28108",
     "the order of a sum follows the number of query rows, so verify and decode differ in bits",
     relation, reduction, "unified", "faulty-splits_from_the_rows", ""},
    {"sgl-30105-no-split", "sgl-project/sglang#30105",
     "a short query over a long context runs on a kernel without split-KV", cost, launcher,
     "unified", "metadata:no_split_kv",
     "right numbers, slow; a rule on the launch finds it, the benchmark has its ratio"},
    {"vllm-51995-3d-gate", "vllm-project/vllm#51995", "split-KV is taken only for one query row",
     cost, launcher, "unified", "metadata:no_split_kv",
     "right numbers, slow; a rule on the launch finds it, the benchmark has its ratio"},
    {"sgl-30105-expand", "sgl-project/sglang#30105",
     "kv heads are expanded with stride 0, so each query head loads its own copy", cost, launcher,
     "unified", "metadata:kv_heads_expanded",
     "right numbers, slow; a rule on the heads finds it, the counters have the bytes"},
};

}  // namespace

std::span<const HandedBug> bugs_of_lengths() { return rows; }

}  // namespace attest
