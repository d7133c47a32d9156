#include "backends/faulty/amx_faults.hpp"

#include <memory>
#include <string>

#include "backends/amx/amx_backend.hpp"

namespace attest {
namespace {

using amx::Defect;
using enum Signature;

// One row each: id, defect, what the kernel does, which calls show it, the rule that rejects them,
// source, signatures.
const std::vector<AmxFault> faults = {
    {"logit_cap_ignored",
     Defect::logit_cap_ignored,
     "the logit cap is accepted and ignored",
     "a softcap and logits near it",
     "logit_cap.reaches_the_scores",
     "sgl-kernel/csrc/cpu/extend.cpp, measured: 180 times the bound",
     {extend}},
    {"slot_offset_in_int32",
     Defect::slot_offset_in_int32,
     "slot * stride is computed in the table's dtype and wraps at 2^31 elements",
     "an int32 table and slots past 2^31 elements of one pool",
     "req_to_token.dtype_holds_the_element_offsets",
     "sgl-kernel/csrc/cpu/extend.cpp, measured: SIGSEGV; decode.cpp's MLA path has the same "
     "product",
     {extend}},
    {"rows_past_max_len_skipped",
     Defect::rows_past_max_len_skipped,
     "rows past the block of 32 that max_len_extend ends in are not computed",
     "max_len_extend shorter than a request by a block",
     "max_len_extend.is_the_longest_request",
     "sgl-kernel/csrc/cpu/extend.cpp, measured: 38 of 70 rows unwritten",
     {extend}},
    {"window_overwrites_encoder",
     Defect::window_overwrites_encoder,
     "the window's shift replaces the encoder's offset, so text keys are read from column 0",
     "a window together with encoder_lens",
     "sliding_window_size.stands_alone",
     "sgl-kernel/csrc/cpu/decode.cpp, measured",
     {decode}},
    {"mask_cut_at_the_row_block",
     Defect::mask_cut_at_the_row_block,
     "a row sees new keys only up to the end of its own block of 32, whatever the mask says",
     "a mask with an entry past the block, as an all-visible one of more than 32 tokens",
     "tree_mask.looks_only_back",
     "sgl-kernel/csrc/cpu/extend.cpp, measured: 148 times the bound at 40 tokens",
     {extend}},
    {"hidden_row_is_nan",
     Defect::hidden_row_is_nan,
     "a row that sees no key is NaN: minus infinity less minus infinity",
     "an all-false mask row without a prefix",
     "tree_mask.shows_every_token_itself",
     "sgl-kernel/csrc/cpu/extend.cpp, measured",
     {extend}},
    {"scratch_of_the_last_item",
     Defect::scratch_of_the_last_item,
     "V rows between the last key and the next multiple of 32 keep the item before's data, and 0 * "
     "NaN is NaN",
     "NaN or infinity in another request's V, on the same thread",
     "",
     "sgl-kernel/csrc/cpu/extend.cpp, measured",
     {extend, decode}},
    {"probabilities_read_at_the_padded_width",
     Defect::probabilities_read_at_the_padded_width,
     "rows of P are written 64 keys apart and read as far apart as the block's padded keys",
     "a last block of at most 32 keys, and two or more packed rows",
     "",
     "sgl-project/sglang#25180",
     {extend, decode}},
    {"nan_key_dropped",
     Defect::nan_key_dropped,
     "max and exp drop NaN, so a NaN key falls out of the softmax in silence",
     "NaN in a visible key",
     "",
     "sgl-kernel/csrc/cpu/extend.cpp, measured",
     {extend, decode}},
    {"f16_as_bf16",
     Defect::f16_as_bf16,
     "fp16 calls are taken on a CPU without amx_fp16 and reach the tiles in a form they misread "
     "(here: as bf16)",
     "every fp16 call",
     "",
     "oneDNN brgemm under extend.cpp, measured: 11,349 times the bound; how it misreads is "
     "modelled",
     {extend}},
    {"cross_attention_takes_seq_lens",
     Defect::cross_attention_takes_seq_lens,
     "cross attention without encoder_lens takes seq_lens for the encoder's length",
     "cross attention without encoder_lens",
     "encoder_lens.counts_the_encoder_tokens",
     "sgl-kernel/csrc/cpu/extend.cpp and decode.cpp, measured",
     {extend, decode}},
    {"output_taken_as_contiguous",
     Defect::output_taken_as_contiguous,
     "the output is written as if it were contiguous",
     "an output of other strides",
     "output.is_contiguous",
     "sgl-kernel/csrc/cpu/decode.cpp, measured",
     {decode}},
    {"rows_past_the_batch_skipped",
     Defect::rows_past_the_batch_skipped,
     "query rows past the batch are left as they were",
     "more query rows than requests",
     "batch.arrays_have_one_entry_per_request",
     "sgl-kernel/csrc/cpu/decode.cpp, measured",
     {decode}},
    {"left_over_heads_skipped",
     Defect::left_over_heads_skipped,
     "query heads past the last whole group are not computed",
     "query heads that the kv heads do not divide",
     "k_buffer.heads_divide_the_query_heads",
     "sgl-kernel/csrc/cpu/decode.cpp, read; theirs reads uninitialised logits there",
     {decode}},
    // Written after the oracles were fixed.
    {"single_v_row_dropped",
     Defect::single_v_row_dropped,
     "V rows are packed in pairs, and one without a partner is left out",
     "an odd number of keys in a block",
     "",
     "modelled: the tail of a packing by pairs",
     {extend, decode}},
    {"head_dim_tail_dropped",
     Defect::head_dim_tail_dropped,
     "the first product stops at the last whole step of 32 dimensions",
     "a head_dim that 32 does not divide",
     "",
     "vllm-project/vllm#31968, vllm-project/vllm#32161: heads of 80 and 112 in a kernel of steps "
     "of 32",
     {extend, decode}},
    {"window_edge_not_hidden",
     Defect::window_edge_not_hidden,
     "keys before the window, in the block that it begins in, count with a score of 0",
     "a window that begins inside a block",
     "",
     "modelled: rows that are not loaded taken for keys",
     {decode}},
    {"sink_of_the_head_in_its_group",
     Defect::sink_of_the_head_in_its_group,
     "a head takes the sink of its number in the group",
     "sinks, and two or more kv heads",
     "",
     "ROCm/rocm-libraries#11189: packed heads that read the first ones' factors",
     {extend, decode}},
    {"mask_row_is_the_packed_row",
     Defect::mask_row_is_the_packed_row,
     "the mask's row is the packed row's number, not its token's",
     "a draft tree, and groups of two or more heads",
     "",
     "modelled: one index for two orders",
     {extend}},
    {"row_ends_in_another_order",
     Defect::row_ends_in_another_order,
     "a packed row ends where a packing head by head would have it end",
     "two or more new tokens without a mask, and groups of two or more heads",
     "",
     "HazyResearch/HipKittens#22: two orders of heads and blocks in one index",
     {extend}},
    {"stored_after_attention",
     Defect::stored_after_attention,
     "the new key and value are stored after the step has read their slots",
     "calls that store key and value",
     "",
     "modelled: a store that does not come before the reads",
     {decode}},
    {"packs_shared_across_heads",
     Defect::packs_shared_across_heads,
     "packed blocks that items share are shared by all kv heads",
     "more new tokens than one item takes, and two or more kv heads",
     "",
     "modelled: a cache key without the head",
     {extend}},
};

std::vector<const Backend*> make_backends() {
  std::vector<const Backend*> backends;
  for (const AmxFault& fault : faults) {
    for (const Signature signature : fault.signatures) {
      for (const amx::Engine engine : {amx::Engine::native, amx::Engine::patch}) {
        static std::vector<std::unique_ptr<const amx::AmxBackend>> kept;
        kept.push_back(std::make_unique<const amx::AmxBackend>(
            signature, engine, "faulty-" + std::string(fault.id),
            "AMX tile kernel, but " + std::string(fault.says), fault.defect));
        backends.push_back(kept.back().get());
      }
    }
  }
  return backends;
}

}  // namespace

std::span<const AmxFault> all_amx_faults() { return faults; }

std::span<const Backend* const> faulty_amx_backends() {
  static const std::vector<const Backend*> backends = make_backends();
  return backends;
}

}  // namespace attest
