#include "backends/faulty/faults.hpp"

#include <string>
#include <utility>

namespace attest {
namespace {

using enum Signature;

const std::vector<Signature> all = {unified, extend, decode, mla_decode};
const std::vector<Signature> many_rows = {unified, extend, mla_decode};
const std::vector<Signature> featured = {unified, extend, decode};

// One row each: id, fault, what the kernel does, which calls can show it, source, signatures.
const std::vector<KernelFault> faults = {
    // Which keys a row sees.
    {"causal_one_too_long", Fault::causal_one_too_long, "every row sees one later key",
     "two or more new tokens in a request", "modelled: off by one in the causal mask", many_rows},
    {"causal_one_too_short", Fault::causal_one_too_short, "no row sees its own key", "every call",
     "modelled: off by one in the causal mask", all},
    {"causal_top_left", Fault::causal_top_left,
     "the causal diagonal starts at key 0 instead of ending at the last key", "a committed prefix",
     "Dao-AILab/flash-attention before 2.1; SGLang's CPU flash_attn_varlen", many_rows},
    {"causal_none_among_new_tokens", Fault::causal_none_among_new_tokens,
     "new tokens see all new tokens", "two or more new tokens in a request",
     "facebookresearch/xformers#1185", many_rows},
    {"context_is_total_length", Fault::context_is_total_length,
     "positions count from the total length, this step's tokens twice",
     "two or more new tokens, or a window", "modelled: one of two meanings of a length", featured},
    {"first_key_ignored", Fault::first_key_ignored, "key 0 is never visited",
     "key 0 inside the window", "modelled: loop from 1", all},
    {"last_partial_tile_dropped", Fault::last_partial_tile_dropped,
     "keys after the last whole tile of 64 are not visited", "a length that 64 does not divide",
     "openvinotoolkit/openvino#38034", all},
    {"prefix_short_by_new_tokens", Fault::prefix_short_by_new_tokens,
     "the newest committed keys, as many as there are new tokens, are skipped",
     "a committed prefix", "sgl-project/sglang#36430", all},
    {"reads_past_kv_len",
     Fault::reads_past_kv_len,
     "the last row goes on to the end of its last page",
     "pages of several tokens, the last not full",
     "vllm-project/vllm#47305",
     {unified}},
    {"reads_past_kv_len_drops_nan",
     Fault::reads_past_kv_len_drops_nan,
     "the same, but keys whose score is NaN fall out of the softmax",
     "the same, under finite poison only",
     "SGLang's CPU extend kernel: its max and exp drop NaN; the over-read is modelled",
     {unified}},
    {"window_one_too_long", Fault::window_one_too_long, "a window of W shows W + 1 keys",
     "a window shorter than the context", "sgl-project/sglang#34273", featured},
    {"window_one_too_short", Fault::window_one_too_short, "a window of W shows W - 1 keys",
     "a window shorter than the context",
     "SGLang's AITER backend passes (s - 1, 0) where s is a distance", featured},
    {"window_ignored", Fault::window_ignored, "the window does not reach the kernel",
     "a window shorter than the context", "sgl-project/sglang#38756", featured},
    {"tree_mask_ignored",
     Fault::tree_mask_ignored,
     "drafts see every earlier draft",
     "a draft tree that is no chain",
     "modelled: a mask that is accepted and not used",
     {extend}},
    {"tree_mask_of_first_request",
     Fault::tree_mask_of_first_request,
     "every request is masked with the first one's tree",
     "requests with different trees",
     "modelled on sgl-project/sglang#37120: a mask at the wrong offset",
     {extend}},

    // Where a key is looked up.
    {"stale_page", Fault::stale_page,
     "the first page (16 tokens where pages are slots) is the previous request's",
     "two or more requests with different prefixes",
     "modelled: a table row of the previous request", all},
    {"v_of_neighbour_head", Fault::v_of_neighbour_head, "V comes from the next kv head",
     "two or more kv heads", "modelled: a stride taken from the wrong tensor", featured},
    {"kv_heads_interleaved", Fault::kv_heads_interleaved,
     "q head h reads kv head h mod num_kv_heads instead of h / group",
     "two or more kv heads of two or more q heads each",
     "modelled: repeat where repeat_interleave was meant", featured},
    {"byte_offset_in_seqused_dtype",
     Fault::byte_offset_in_seqused_dtype,
     "the byte offset of a key is computed in seqused_k's dtype and wraps at 2^31",
     "int32 seqused_k and pages past 2 GiB of one pool",
     "modelled on sgl-project/sglang#36541; the real kernel does not show it where it could be run",
     {unified},
     true},
    {"element_offset_in_seqused_dtype",
     Fault::element_offset_in_seqused_dtype,
     "the element offset of a key is computed in seqused_k's dtype and wraps at 2^31",
     "int32 seqused_k and pages past 2^31 elements of one pool",
     "modelled on sgl-project/sglang#36541",
     {unified},
     true},
    {"slot_offset_in_table_dtype",
     Fault::slot_offset_in_table_dtype,
     "slot * stride is computed in the table's dtype and wraps at 2^31 elements",
     "an int32 table and slots past 2^31 elements of one pool",
     "SGLang's CPU extend kernel; ROCm/aiter#4474",
     {extend, mla_decode},
     true},
    {"zeros_past_2_gib",
     Fault::zeros_past_2_gib,
     "keys whose byte offset reaches 2^31 - 2 read as zero",
     "pages past 2 GiB of one pool",
     "ROCm/aiter#4774: a buffer descriptor with a fixed range",
     {unified},
     true},
    {"aliases_past_4_gib",
     Fault::aliases_past_4_gib,
     "byte offsets are taken modulo 2^32",
     "pages past 4 GiB of one pool",
     "modelled: a launch specialised for a small pool, used for a large one",
     {unified},
     true},

    // The softmax.
    {"scale_one_percent_large", Fault::scale_one_percent_large, "scores are 1 % too large",
     "every call", "modelled: a constant of the exp2 form rounded", all},
    {"softcap_missing", Fault::softcap_missing, "the logit cap is accepted and ignored",
     "a softcap and logits near it", "SGLang's CPU extend kernel; vllm-project/vllm-metal#665",
     featured},
    {"softmax_sum_not_rescaled", Fault::softmax_sum_not_rescaled,
     "a new maximum rescales the output but not the sum",
     "more than 64 keys, the maximum not in the first tile", "modelled: online softmax", all},
    {"p_truncated", Fault::p_truncated, "probabilities are cut to bf16 instead of rounded",
     "every call", "modelled: a cast that truncates", all},
    {"accumulator_in_bf16", Fault::accumulator_in_bf16,
     "the output accumulator is rounded to bf16 after each tile", "more than 64 keys",
     "modelled: partial results kept in the output's dtype", all},
    {"descale_of_v_is_ks",
     Fault::descale_of_v_is_ks,
     "V is descaled with K's factor",
     "k_descale and v_descale that differ",
     "sgl-project/sglang#26852",
     {unified}},
    {"descale_of_v_missing",
     Fault::descale_of_v_missing,
     "V is not descaled",
     "a v_descale other than 1",
     "sgl-project/sglang#34765",
     {unified, mla_decode}},
    {"descales_missing",
     Fault::descales_missing,
     "q, K and V are not descaled",
     "a descale other than 1",
     "flashinfer-ai/flashinfer#1023",
     {unified, mla_decode}},
    {"sink_missing", Fault::sink_missing, "the sink is not in the denominator",
     "sinks of the size of a row's log-sum-exp", "ikawrakow/ik_llama.cpp#2087", featured},
    {"sink_in_every_split", Fault::sink_in_every_split, "each split adds the sink",
     "sinks, and keys in two splits of 64", "vllm-project/vllm-metal#550", featured},

    // The merge of the splits (the kernel makes two where the call asks for one).
    {"last_split_dropped", Fault::last_split_dropped, "the last split is not merged",
     "more than 64 keys", "flashinfer-ai/flashinfer#4382", all},
    {"merge_not_rescaled", Fault::merge_not_rescaled,
     "the splits' outputs are added as if their maxima were equal", "more than 64 keys",
     "modelled: a reduction without the log-sum-exp weights", all},

    // What is written, and where.
    {"output_truncated", Fault::output_truncated, "the output is cut toward zero", "every call",
     "modelled: a store that drops the low half of a float", all},
    {"last_head_not_written", Fault::last_head_not_written, "the last q head is not written",
     "every call", "local-inference-lab/b12x#24", all},
    {"first_row_repeated",
     Fault::first_row_repeated,
     "all rows of a request get the first row's output when their number is no power of two",
     "three, five, six, seven ... new tokens",
     "ROCm/aiter#2720",
     {mla_decode}},
    {"writes_past_the_end", Fault::writes_past_the_end, "two bytes behind the output are written",
     "every call", "modelled: a store without its mask", all},
    {"stores_at_next_slot",
     Fault::stores_at_next_slot,
     "the new key and value are stored one slot further on",
     "calls that store key and value",
     "modelled on sgl-project/sglang#40351: a store at a wrong address",
     {decode}},

    // The process.
    {"crash", Fault::crash, "writes through a null pointer", "every call",
     "modelled: an illegal access", all},
    {"hang", Fault::hang, "never returns", "every call", "modelled: a lost barrier", all},
};

const std::vector<KernelFault>& every_fault() {
  static const std::vector<KernelFault> list = [] {
    std::vector<KernelFault> every = faults;
    for (const auto part : {reported_faults, later_faults, second_address_faults,
                            second_mask_faults, second_softmax_faults}) {
      for (KernelFault& fault : part()) every.push_back(std::move(fault));
    }
    return every;
  }();
  return list;
}

std::vector<ScalarBackend> make_backends() {
  std::vector<ScalarBackend> backends;
  for (const KernelFault& fault : every_fault()) {
    for (const Signature signature : fault.signatures) {
      backends.emplace_back("faulty-" + std::string(fault.id), signature,
                            "scalar, but " + std::string(fault.says), Mistake{fault.fault, {}});
    }
  }
  return backends;
}

}  // namespace

std::span<const KernelFault> all_kernel_faults() { return every_fault(); }

const KernelFault* find_kernel_fault(std::string_view id) {
  for (const KernelFault& fault : every_fault()) {
    if (fault.id == id) return &fault;
  }
  return nullptr;
}

std::span<const ScalarBackend> faulty_backends() {
  static const std::vector<ScalarBackend> backends = make_backends();
  return backends;
}

}  // namespace attest
