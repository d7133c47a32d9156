// Bugs of heads, splits, windows and masks.

#include "property_tests/mutants/handed_bugs.hpp"

namespace attest {
namespace {

using enum BugClass;
using enum Site;

// One row each: id, source, what goes wrong, class, site, kernels, what stands for it, why not
// numbers.
constexpr HandedBug rows[] = {
    {"b12x-24-rowslot", "local-inference-lab/b12x#24",
     "of packed rows only the first eight are stored", numeric, kernel_math, "HIP unified",
     "faulty-hip_rows_past_8_not_stored, faulty-last_head_not_written", ""},
    {"fla-1029-nondivisible", "fla-org/flash-linear-attention#1029",
     "the group size is rounded down although kv heads do not divide q heads", rule_only, wrapper,
     "unified, AMX decode", "rule:heads.divide_evenly, rule:k_buffer.heads_divide_the_query_heads",
     "no legal case has such heads: the rule refuses the call"},
    {"llama-19115-gqa-pow2", "ggml-org/llama.cpp#19115",
     "a block of heads, a power of two, straddles two groups and reads the first one's kv head",
     numeric, kernel_math, "unified, extend, decode",
     "faulty-head_blocks_straddle_groups, faulty-hip_packing_starts_at_head_0", ""},
    {"fa-2550-varlen-paged-split", "Dao-AILab/flash-attention#2550",
     "the combine step writes every sequence's rows at the first one's", numeric, reduction,
     "HIP unified", "faulty-hip_reduction_forgets_the_first_row", ""},
    {"fi-4382-causal-extent", "flashinfer-ai/flashinfer#4382",
     "the merge takes as many splits as the first row of a request needs", numeric, reduction,
     "unified, extend, mla_decode",
     "faulty-merge_stops_at_the_first_row, faulty-last_split_dropped, "
     "faulty-hip_last_split_dropped",
     ""},
    {"ov-38034-partitions", "openvinotoolkit/openvino#38034",
     "the number of partitions is the longest sequence's; a shorter one may need one more", numeric,
     launcher, "unified", "faulty-partitions_of_the_longest, faulty-last_partial_tile_dropped", ""},
    {"rocmlir-2371-empty-split", "ROCm/rocMLIR#2371",
     "a split that sees no key counts minus infinity minus minus infinity", numeric, reduction,
     "HIP unified", "faulty-hip_empty_split_is_nan", ""},
    {"tinygrad-18009-chunkcap", "tinygrad/tinygrad#18009", "keys past 256 chunks are not visited",
     numeric, launcher, "all", "faulty-keys_past_16k_ignored, faulty-hip_partitions_of_32_keys",
     ""},
    {"gaudi-1395-block-floor", "vllm-project/vllm-gaudi#1395",
     "a window is cut to whole pages, rounded down", numeric, metadata, "unified",
     "faulty-window_floored_to_pages", ""},
    {"ik-2186-swa-tail", "ikawrakow/ik_llama.cpp#2186",
     "the tail of the cache is passed, which is one sequence's window only where sequences do not "
     "interleave",
     numeric, launcher, "unified", "faulty-window_tail_of_the_pool", ""},
    {"sgl-26513-swa-prefix", "sgl-project/sglang#26513",
     "the pass over the pool reads new rows before they are stored, and has no window", numeric,
     metadata, "extend", "faulty-pool_pass_reads_new_rows", ""},
    {"sgl-34273-extra-key", "sgl-project/sglang#34273", "a window admits one key too many", numeric,
     kernel_math, "unified, extend, decode",
     "faulty-window_one_too_long, faulty-hip_window_one_too_long, metadata:window_one_key_long",
     ""},
    {"sgl-38756-no-window-arg", "sgl-project/sglang#38756",
     "a windowed layer goes to a kernel without a window", numeric, launcher,
     "unified, extend, decode", "faulty-window_ignored, metadata:window_missing", ""},
    {"vllm-30887-v-outside", "vllm-project/vllm#30887",
     "V before the window is loaded and 0 * NaN reaches the output", numeric, kernel_math,
     "unified", "faulty-v_before_the_window_read", ""},
    {"vllm-34570-vheloop0", "vllm-project/vllm#34570",
     "a loop over blocks of 64 values never runs for small heads", numeric, launcher,
     "unified, decode", "faulty-small_head_dims_not_written", ""},
    {"vmetal-550-sink-dead", "vllm-project/vllm-metal#550",
     "each split adds the sink; under a window nobody does", numeric, kernel_math,
     "unified, extend, decode, HIP unified",
     "faulty-sink_in_every_split, faulty-hip_sink_missing_under_a_window", ""},
    {"fi-350-cap-after-mask", "flashinfer-ai/flashinfer#350",
     "the cap comes after the mask, so a masked key weighs exp(-cap)", numeric, kernel_math,
     "HIP unified", "faulty-hip_cap_after_mask", ""},
    {"aiter-3894-shuffle-scale", "ROCm/aiter#3894",
     "scales per token and head are read in another order than they are stored", outside,
     kernel_address, "-", "",
     "no signature here takes scales per token and head: K and V have one factor each"},
    {"fi-1008-mask-oob", "flashinfer-ai/flashinfer#1008",
     "mask bits past a row's end make padding visible", numeric, kernel_address, "extend",
     "faulty-mask_padding_visible", ""},
    {"fi-1028-mask-stuck", "flashinfer-ai/flashinfer#1028",
     "the mask of the call before stays when the next call is plain causal", trace, wrapper,
     "extend", "step:mask_of_the_step_before", ""},
    {"sgl-33127-mask-reuse", "sgl-project/sglang#33127",
     "a mask buffer made for a smaller batch is used for a larger one", rule_only, graph, "extend",
     "rule:tree_mask.holds_one_square_per_request",
     "a mask that ends early is refused before a kernel can read past it"},
    {"sgl-37120-stale-true", "sgl-project/sglang#37120",
     "a mask that only grows is passed with an earlier, larger batch's rows", trace, metadata,
     "extend", "step:mask_of_the_step_before, faulty-tree_mask_of_first_request", ""},
    {"xf-1185-lost-causal", "facebookresearch/xformers#1185",
     "a mask loses its causality on its way to the device", numeric, wrapper,
     "unified, extend, mla_decode",
     "faulty-causal_none_among_new_tokens, metadata:tree_mask_missing", ""},
};

}  // namespace

std::span<const HandedBug> bugs_of_masks() { return rows; }

}  // namespace attest
