#include "contracts/rules/broken_parts.hpp"

namespace attest {
namespace {

Problem server_of_four(Problem problem) {
  problem.num_draft_tokens = 4;
  problem.context_len = 60;
  return problem;
}

/// A replayed batch whose last request is padding.
Problem padded(Problem problem) {
  problem.path = Path::replay;
  problem.requests.back().live = false;
  return problem;
}

/// Pools of K and V just above 2^31 bytes (2048 a page), with the batch at their end.
Problem two_gib_verify() {
  Problem p = uneven_verify();
  p.pool.num_pages = (std::int64_t{1} << 31) / 2048 + 8;
  p.pool.placement = Placement::high;
  return p;
}

void break_offsets(BrokenCalls& calls) {
  calls.unified("query_offsets.start_at_zero", "the offsets begin at 1", uneven_verify(),
                [](UnifiedCall& c) { c.cu_seqlens_q.values[0] = 1; });
  calls.mla("query_offsets.start_at_zero", "the offsets begin at 1", mla_verify(),
            [](MlaDecodeCall& c) { c.qo_indptr.values[0] = 1; });
  calls.unified("query_offsets.never_decrease",
                "the offsets are differences of lengths instead of sums", uneven_verify(),
                [](UnifiedCall& c) { c.cu_seqlens_q.values = {0, 9, 5}; });
  calls.mla("query_offsets.never_decrease", "the second offset was never written", mla_verify(),
            [](MlaDecodeCall& c) { c.qo_indptr.values[1] = -1; });
  calls.unified("query_offsets.end_at_the_last_row",
                "the last offset is of a larger batch than q holds", uneven_verify(),
                [](UnifiedCall& c) { c.cu_seqlens_q.values[2] = 8; });
  calls.unified("query_offsets.end_at_the_last_row", "the last token has no offset",
                uneven_verify(), [](UnifiedCall& c) { c.cu_seqlens_q.values[2] = 4; });
  calls.mla("query_offsets.end_at_the_last_row", "the last offset is of a longer draft",
            mla_verify(), [](MlaDecodeCall& c) { c.qo_indptr.values[2] = 6; });
  calls.unified("query_offsets.follow_the_real_lengths",
                "rows // batch for every request: the total agrees, the lengths do not",
                sample_problem(Mode::target_verify, {{35, 3}, {9, 1}}),
                [](UnifiedCall& c) { c.cu_seqlens_q.values = {0, 2, 4}; });
  calls.mla("query_offsets.follow_the_real_lengths", "one request has the other one's row",
            mla_verify(), [](MlaDecodeCall& c) { c.qo_indptr.values[1] = 3; });
}

void break_query_lengths(BrokenCalls& calls) {
  calls.unified("max_seqlen_q.is_the_longest_request",
                "max_seqlen_q is 1, so row i is taken for request i", uneven_verify(),
                [](UnifiedCall& c) { c.max_seqlen_q = 1; });
  calls.mla("max_seqlen_q.is_the_longest_request", "max_seqlen_q is the decode step's",
            mla_verify(), [](MlaDecodeCall& c) { c.max_seqlen_q = 1; });
  calls.mla("draft_length.is_uniform", "the offsets are uneven, the kernel's stride is not",
            mla_verify(), [](MlaDecodeCall& c) { c.qo_indptr.values = {0, 1, 4}; });
  Problem two_drafts = mla_verify();
  Problem four_configured = two_drafts;
  four_configured.num_draft_tokens = 4;
  calls.unsaid("draft_length.is_the_configured_one",
               "two drafts per request on a server set up for four", four_configured, two_drafts);
  calls.mla(
      "draft_length.is_the_configured_one", "the draft length is not the configured one",
      [] {
        Problem p = mla_verify();
        p.num_draft_tokens = 2;
        return p;
      }(),
      [](MlaDecodeCall& c) { c.max_seqlen_q = 4; });
  calls.mla("draft_length.has_a_kernel", "three rows per request run on the kernel for four",
            mla_verify(), [](MlaDecodeCall& c) { c.max_seqlen_q = 3; });
  calls.mla(
      "draft_length.has_a_kernel", "five rows of 16-bit q over an fp8 cache",
      [] {
        Problem p = mla_verify();
        p.model.kv_dtype = Dtype::fp8_e4m3fn;
        return p;
      }(),
      [](MlaDecodeCall& c) { c.max_seqlen_q = 5; });
}

void break_key_lengths(BrokenCalls& calls) {
  calls.unified("seqused_k.counts_this_steps_tokens",
                "seqused_k holds the committed lengths, without the drafts", uneven_verify(),
                [](UnifiedCall& c) { c.seqused_k.values = {35, 9}; });
  calls.unified(
      "seqused_k.counts_this_steps_tokens", "the configured draft count is added to every length",
      server_of_four(uneven_verify()), [](UnifiedCall& c) { c.seqused_k.values = {39, 13}; });
  calls.unified(
      "seqused_k.counts_this_steps_tokens",
      "at capture the dummy rows carry the configured draft count",
      [] {
        Problem p = sample_problem(Mode::target_verify, {{4, 2}, {4, 2}});
        p.path = Path::capture;
        p.num_draft_tokens = 4;
        for (Request& r : p.requests) r.live = false;
        return p;
      }(),
      [](UnifiedCall& c) { c.seqused_k.values = {8, 8}; });
  calls.unified("seqused_k.is_int64_past_2_gib",
                "lengths cast to int32 over a cache above 2^31 bytes", two_gib_verify(),
                [](UnifiedCall& c) { c.seqused_k = int_array(Dtype::int32, c.seqused_k.values); });
  calls.unified("seqused_k.is_int64", "lengths cast to int32 over a small cache", uneven_verify(),
                [](UnifiedCall& c) { c.seqused_k = int_array(Dtype::int32, c.seqused_k.values); });
  calls.unified("max_seqlen_k.covers_the_longest_request",
                "max_seqlen_k is from before the last page was added", uneven_verify(),
                [](UnifiedCall& c) { c.max_seqlen_k = 32; });
  calls.mla("kv_indptr.never_decreases", "an offset is smaller than the one before", mla_verify(),
            [](MlaDecodeCall& c) { c.kv_indptr.values = {0, 28, 27}; });
  calls.mla("kv_indptr.stays_inside_kv_indices", "the offsets count drafts that have no entries",
            mla_verify(), [](MlaDecodeCall& c) { c.kv_indptr.values = {0, 20, 29}; });
  calls.mla("kv_indptr.counts_this_steps_tokens", "the lengths are the committed ones",
            mla_verify(), [](MlaDecodeCall& c) { c.kv_indptr.values = {0, 18, 23}; });
  calls.mla("kv_last_page_lens.fits_the_page", "sequence lengths in place of last page lengths",
            mla_verify(), [](MlaDecodeCall& c) { c.kv_last_page_lens.values = {20, 7}; });
}

void break_padding(BrokenCalls& calls) {
  calls.unified("padding.rows_have_keys", "the padded row has the fill value 1 for a length",
                padded(uneven_verify()), [](UnifiedCall& c) { c.seqused_k.values[1] = 1; });
  calls.mla("padding.rows_have_keys", "the padded request has no keys", padded(mla_verify()),
            [](MlaDecodeCall& c) { c.kv_indptr.values[2] = 20; });
  calls.unified("padding.rows_have_the_modes_length",
                "the padded row kept the length of the batch before", padded(uneven_verify()),
                [](UnifiedCall& c) { c.seqused_k.values[1] = 14; });
  calls.mla("padding.rows_have_the_modes_length",
            "the padded request kept a length of the batch before", padded(mla_verify()),
            [](MlaDecodeCall& c) { c.kv_indptr.values[2] = 26; });
  calls.unified("padding.q_ends_with_the_offsets", "q is padded by two rows", uneven_verify(),
                [](UnifiedCall& c) {
                  c.q = contiguous(c.q.dtype, {7, 4, 32});
                  c.out = contiguous(c.out.dtype, {7, 4, 32});
                });
  calls.mla("padding.q_ends_with_the_offsets", "q is padded by two rows", mla_verify(),
            [](MlaDecodeCall& c) {
              c.q = contiguous(c.q.dtype, {6, 16, 576});
              c.o = contiguous(c.o.dtype, {6, 16, 512});
            });
}

}  // namespace

void break_offsets_and_lengths(BrokenCalls& calls) {
  break_offsets(calls);
  break_query_lengths(calls);
  break_key_lengths(calls);
  break_padding(calls);
}

}  // namespace attest
