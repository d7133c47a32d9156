#include "backends/hip/planted_faults.hpp"

#include <string>

#include "backends/hip/hip_backend.hpp"
#include "backends/hip/kernels/faulty_launches.hpp"

namespace attest::hip {
namespace {

using enum PlantedFault;

// One row each: id, fault, what the kernel does, which calls can show it, source.
constexpr PlantedFaultRow rows[] = {
    {"k_elements_int32", k_elements_int32, "the element offset of a key is a 32-bit product",
     "pages past 2^31 elements of one pool",
     "modelled on sgl-project/sglang#36541; ROCm/aiter#4474 has it in another kernel"},
    {"v_elements_int32", v_elements_int32, "the same of V only",
     "pages past 2^31 elements of one pool", "modelled on sgl-project/sglang#36541"},
    {"k_bytes_int32", k_bytes_int32, "the byte offset of a key wraps at 2^31",
     "pages past 2 GiB of one pool", "modelled on sgl-project/sglang#36541"},
    {"v_bytes_int32", v_bytes_int32, "the same of V only", "pages past 2 GiB of one pool",
     "modelled on sgl-project/sglang#36541"},
    {"k_bytes_uint32", k_bytes_uint32, "the byte offset of a key is taken modulo 2^32",
     "pages past 4 GiB of one pool",
     "modelled: a launch specialised for a small pool, used for a large one"},
    {"page_stride_assumed", page_stride_assumed,
     "a page is taken to be page_size slots long, whatever its stride",
     "pools whose pages have room behind their slots", "ROCm/aiter#3498", false},
    {"far_keys_read_zero", far_keys_read_zero, "keys and values past 2 GiB are read as zeros",
     "pages past 2 GiB of one pool",
     "ROCm/aiter#2517, a buffer descriptor's size in 32 bits; ROCm/aiter#4774"},
    {"causal_one_too_long", causal_one_too_long, "every row sees one later key",
     "two or more new tokens in a request", "modelled: off by one in the causal mask"},
    {"causal_one_too_short", causal_one_too_short, "no row sees its own key", "every call",
     "modelled: off by one in the causal mask"},
    {"window_one_too_long", window_one_too_long, "a window of W shows W + 1 keys",
     "a window shorter than the context", "sgl-project/sglang#34273"},
    {"window_one_too_short", window_one_too_short, "a window of W shows W - 1 keys",
     "a window shorter than the context",
     "SGLang's AITER backend passes (s - 1, 0) where s is a distance"},
    {"window_prunes_one_tile_more", window_prunes_one_tile_more,
     "the window's first tile is skipped", "a window that begins behind the first 64 keys",
     "modelled: pruning by the end of the window instead of its begin"},
    {"reads_to_the_end_of_the_page", reads_to_the_end_of_the_page,
     "the last row goes on to the end of its last page",
     "pages of several tokens, the last not full", "vllm-project/vllm#47305"},
    {"v_loaded_to_the_end_of_the_page", v_loaded_to_the_end_of_the_page,
     "V is loaded to the end of the last page and meets a probability of 0",
     "NaN in V's slots behind the last key",
     "Dao-AILab/flash-attention#2374, vllm-project/vllm#936", false},
    {"bounded_by_the_maximum", bounded_by_the_maximum, "no key past max_seqlen_k is visited",
     "a max_seqlen_k of an earlier step", "vllm-project/vllm#32312", false},
    {"partitions_of_32_keys", partitions_of_32_keys,
     "each split takes 32 keys, and keys behind the last are dropped",
     "more keys than the splits take",
     "tinygrad/tinygrad#18009 with 256 chunks of 64; openvinotoolkit/openvino#38034"},
    {"masked_tile_floors_maximum", masked_tile_floors_maximum,
     "keys of which a row sees none leave its maximum at 0",
     "rows whose logits all lie below -88, and keys that only other rows of the block see",
     "AITER's unified_attention kernels: the maximum of a fully masked tile becomes 0", false},
    {"softcap_overflows", softcap_overflows, "the cap's tanh is a quotient of two exponentials",
     "logits beyond 88 times the cap", "vllm-project/vllm#56578", false},
    {"cap_after_mask", cap_after_mask, "the cap turns a masked key's -infinity into -cap",
     "a cap, and keys that only other rows of the block see", "flashinfer-ai/flashinfer#350"},
    {"maximum_of_one_tile", maximum_of_one_tile,
     "the running maximum is the last tile's, so earlier sums are scaled up",
     "logits that fall by more than 88 from one tile to the next", "sgl-project/sglang#20220",
     false},
    {"groups_not_rescaled", groups_not_rescaled,
     "the parts of a block's four groups are added as if their maxima were equal",
     "more than 16 keys", "modelled: a merge without its weights"},
    {"splits_not_rescaled", splits_not_rescaled,
     "the splits' outputs are added as if their maxima were equal", "keys in two splits",
     "modelled: a reduction without its weights"},
    {"last_split_dropped", last_split_dropped, "the last split is not merged",
     "keys in the last split", "flashinfer-ai/flashinfer#4382"},
    {"empty_split_is_nan", empty_split_is_nan,
     "a split that saw no key counts -infinity minus -infinity", "fewer keys than splits",
     "ROCm/rocMLIR#2371"},
    {"sink_in_every_split", sink_in_every_split, "each split adds the sink",
     "sinks, and keys in two splits", "vllm-project/vllm-metal#550"},
    {"sink_missing", sink_missing, "the sink is not in the denominator",
     "sinks of the size of a row's log-sum-exp", "ikawrakow/ik_llama.cpp#2087"},
    {"sink_missing_in_the_reduction", sink_missing_in_the_reduction,
     "the sink counts only where there is no reduction", "sinks, and more than one split",
     "kekzl/imp#1346"},
    {"sink_missing_under_a_window", sink_missing_under_a_window,
     "the sink is left out on windowed layers", "sinks and a window",
     "vllm-project/vllm-metal#550"},
    {"packing_starts_at_head_0", packing_starts_at_head_0,
     "every block of packed rows begins with the group's first head",
     "more rows than a block takes, of groups that do not divide 16",
     "modelled: packing that expects the group to divide the block (vllm-project/vllm#18088)"},
    {"rows_past_8_not_stored", rows_past_8_not_stored,
     "of 16 packed rows only the first 8 are stored", "more than 8 packed rows in a request",
     "local-inference-lab/b12x#24"},
    {"reduction_forgets_the_first_row", reduction_forgets_the_first_row,
     "the reduction writes each request's rows from row 0 on", "two requests, and two splits",
     "Dao-AILab/flash-attention#2550"},
    {"rows_without_keys_not_written", rows_without_keys_not_written,
     "a row that sees no key is not written", "lengths below the number of new tokens",
     "flashinfer-ai/flashinfer#1533", false},
    {"padding_rows_written", padding_rows_written, "rows that no request has are set to zero",
     "q with more rows than the offsets cover",
     "AITER's unified_attention: the reduction runs on "
     "every row of q",
     false},
    // Written after the oracles were fixed.
    {"window_of_the_blocks_first_row", window_of_the_blocks_first_row,
     "all rows of a block see from its first row's oldest key on",
     "a window, and two or more new tokens in a block",
     "modelled: pruning by tiles without a mask"},
    {"causal_of_the_blocks_last_row", causal_of_the_blocks_last_row,
     "all rows of a block see up to its last row's key", "two or more new tokens in a block",
     "modelled: pruning by tiles without a mask"},
    {"window_edge_seen_as_whole", window_edge_seen_as_whole,
     "the tile that a window begins in counts as wholly seen",
     "a window that begins inside a tile, a tile before the last key's",
     "modelled: the test for a whole tile forgets the window"},
    {"one_table_entry_a_tile", one_table_entry_a_tile,
     "the page of a tile's first key serves the whole tile", "pages of fewer than 64 tokens",
     "flashinfer-ai/flashinfer#4347, vllm-project/vllm#57614: page sizes that a kernel was not "
     "written for"},
    {"table_rows_packed", table_rows_packed,
     "the table's rows are taken to lie as far apart as the longest request needs",
     "two requests, and a table with room",
     "Luce-Org/lucebox#420: a compact row stride over an "
     "allocated one"},
    {"v_of_the_other_stage", v_of_the_other_stage,
     "the second product takes V from the buffer that is being filled", "every call",
     "modelled: double buffering off by one"},
    {"small_rescale_left_out", small_rescale_left_out,
     "outputs are not rescaled when a row's maximum grows by less than a factor of 2",
     "a maximum that grows a little from one tile to the next",
     "modelled: a threshold for rescaling that the sum does not follow"},
    {"sum_of_one_group", sum_of_one_group,
     "of a block's four groups only the first one's sum is in the denominator", "more than 16 keys",
     "modelled: a reduction over warps left out"},
    {"sink_in_empty_splits", sink_in_empty_splits, "a split that saw no key adds the sink as well",
     "sinks, and fewer keys than splits", "ROCm/rocm-libraries#12227"},
};

}  // namespace

std::span<const PlantedFaultRow> all_planted_faults() { return rows; }

std::unique_ptr<Backend> faulty_hip_backend(const PlantedFaultRow& row) {
  static const std::shared_ptr<const Engine> host = host_engine(32);
  KernelVariant variant;
  variant.launch = faulty_launch_on_host(row.fault);
  variant.splits = 3;
  variant.says = "our HIP kernel, but " + std::string(row.says);
  return std::make_unique<HipBackend>("faulty-hip_" + std::string(row.id), Signature::unified, host,
                                      std::move(variant));
}

std::vector<std::unique_ptr<Backend>> faulty_hip_backends() {
  std::vector<std::unique_ptr<Backend>> backends;
  for (const PlantedFaultRow& row : rows) {
    if (row.generated) backends.push_back(faulty_hip_backend(row));
  }
  return backends;
}

}  // namespace attest::hip
