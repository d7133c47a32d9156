// The second batch of faults of a call that were written after the oracles, the rules and the
// hypotheses were fixed, by somebody who had read none of them.

#include <array>

#include "property_tests/fault_edits.hpp"
#include "property_tests/metadata_faults.hpp"
#include "property_tests/signature_sets.hpp"

namespace attest {
namespace {

using enum Signature;
using namespace signature_sets;

constexpr std::array faults = {
    MetadataFault{"table_without_the_evicted_pages",
                  "a windowed request's row begins with its first page that is still there",
                  "NVIDIA/TensorRT-LLM#13745: a window's own list of pages under lengths of the "
                  "whole request",
                  table_without_the_evicted_pages, "block_table",
                  "a window that begins behind a live request's first page",
                  of({unified, vllm_cpu})},
    MetadataFault{"pages_of_the_prefix_last",
                  "a row lists the pages of the new tokens before those of the cached prefix",
                  "taco-project/FlexKV#186", pages_of_the_prefix_last, "block_table",
                  "a live request with a whole committed page, and no window",
                  of({unified, vllm_cpu})},
    MetadataFault{"branches_read_each_others_drafts",
                  "a draft branch reads its earlier drafts from the branch before it",
                  "sgl-project/sglang#8409, sgl-project/sglang#7523",
                  branches_read_each_others_drafts, "block_table, req_to_token, kv_page_indices",
                  "a draft_decode step with two branches behind the first step",
                  of({unified, decode, paged_ragged})},
    MetadataFault{
        "lists_in_another_order", "requests were reordered after their lists of pages were built",
        "vllm-project/vllm#17945: a batch that is reordered for one of its builders",
        lists_in_another_order, "kv_indptr", "two requests with different keys, one of them live",
        of({mla_decode, batch_prefill, paged_ragged, legacy_extend})},
    MetadataFault{
        "seq_lens_include_the_encoder", "lengths count the encoder's tokens as well as the text's",
        "modelled: one of two meanings of a length", seq_lens_include_the_encoder, "seq_lens",
        "a live request with encoder tokens, and no cross attention", of({extend, decode})},
    MetadataFault{"mask_before_the_reordering",
                  "neighbouring drafts were exchanged after their mask was built",
                  "modelled: drafts that are sorted by their scores once the tree is drawn",
                  mask_before_the_reordering, "tree_mask, custom_mask",
                  "a mask that differs when a draft and the next, not its child, are exchanged",
                  of({extend, legacy_extend})},
};

}  // namespace

std::span<const MetadataFault> second_metadata_faults() { return faults; }

}  // namespace attest
