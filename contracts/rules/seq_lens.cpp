#include "contracts/rules/seq_lens.hpp"

#include <string>

#include "contracts/rules/finding_text.hpp"

namespace attest {
namespace {

std::string sum_text(const Problem& p, const Request& r) {
  const bool drafts = p.mode == Mode::draft_decode && p.draft_step > 0;
  return std::to_string(r.kv_len()) + " = " + std::to_string(r.committed) +
         (drafts ? " committed and earlier drafts + " : " committed + ") +
         std::to_string(r.new_tokens) + " new";
}

template <class CallType>
void counts_the_new_tokens(const CallType& c, const Truth& truth, Report& report) {
  if (!recorded(c.seq_lens, "seq_lens", report)) return;
  for (std::size_t i = 0; i < truth.problem.requests.size(); ++i) {
    const Request& r = truth.problem.requests[i];
    if (!r.live || c.seq_lens[i] == r.kv_len()) continue;
    report.add(entry("seq_lens", static_cast<std::int64_t>(i)), std::to_string(c.seq_lens[i]),
               sum_text(truth.problem, r));
  }
}

void leaves_the_prefix(const ExtendCall& c, const Truth& truth, Report& report) {
  if (!recorded(c.seq_lens, "seq_lens", report)) return;
  if (!recorded(c.extend_seq_lens, "extend_seq_lens", report)) return;
  for (std::size_t i = 0; i < truth.problem.requests.size(); ++i) {
    const Request& r = truth.problem.requests[i];
    std::int64_t prefix = 0;
    if (__builtin_sub_overflow(c.seq_lens[i], c.extend_seq_lens[i], &prefix)) prefix = -1;
    // Below 0 the kernel raises for padded rows too, and with them for the whole batch.
    if (prefix >= 0 && (!r.live || prefix == r.committed)) continue;
    const auto at = static_cast<std::int64_t>(i);
    report.add(prefix < 0 ? Severity::fault : Severity::wrong,
               entry("seq_lens", at) + " - " + entry("extend_seq_lens", at), std::to_string(prefix),
               std::to_string(r.committed) + " committed" +
                   (prefix < 0 ? " (the kernel raises below 0)" : ""));
  }
}

void is_at_least_one(const DecodeCall& c, const Truth& truth, Report& report) {
  if (!recorded(c.seq_lens, "seq_lens", report)) return;
  for (std::size_t i = 0; i < truth.problem.requests.size(); ++i) {
    if (c.seq_lens[i] >= 1) continue;
    const bool live = truth.problem.requests[i].live;
    report.add(live ? Severity::fault : Severity::policy,
               entry("seq_lens", static_cast<std::int64_t>(i)), std::to_string(c.seq_lens[i]),
               live ? "at least 1" : "at least 1, padded rows included");
  }
}

template <class CallType>
void fits_the_table(const CallType& c, const Truth& truth, Report& report) {
  if (!recorded(c.seq_lens, "seq_lens", report)) return;
  if (c.encoder_lens && !recorded(*c.encoder_lens, "encoder_lens", report)) return;
  const std::int64_t columns = c.req_to_token.size(1);
  for (std::size_t i = 0; i < truth.problem.requests.size(); ++i) {
    const std::int64_t encoder = c.encoder_lens ? (*c.encoder_lens)[i] : 0;
    std::int64_t cells = 0;
    const bool overflow = __builtin_add_overflow(c.seq_lens[i], encoder, &cells);
    if (!overflow && cells <= columns) continue;
    report.add(entry("seq_lens", static_cast<std::int64_t>(i)),
               std::to_string(c.seq_lens[i]) +
                   (encoder ? " after " + std::to_string(encoder) + " encoder tokens" : ""),
               "at most the " + std::to_string(columns) + " columns of req_to_token");
  }
}

constexpr Rule rules[] = {
    {.id = "seq_lens.counts_committed_and_new_tokens",
     .says = "seq_lens[i] is the committed length plus this step's new tokens; while drafting, the "
             "drafts of earlier steps count as committed",
     .why = "the kernels take it as the total: what it leaves out is not attended, in silence",
     .source = "sgl-project/sglang#36430",
     .severity = Severity::wrong,
     .extend = counts_the_new_tokens<ExtendCall>,
     .decode = counts_the_new_tokens<DecodeCall>},
    {.id = "seq_lens.leaves_the_committed_prefix",
     .says = "seq_lens[i] - extend_seq_lens[i] is the committed length",
     .why = "the kernel derives the prefix by that subtraction; short, every new token misses the "
            "newest committed keys; negative, the call raises",
     .source = "sgl-project/sglang#36430",
     .severity = Severity::wrong,
     .extend = leaves_the_prefix},
    {.id = "seq_lens.is_at_least_one",
     .says = "decode's seq_lens are at least 1: the token stored by the call counts",
     .why = "a row without keys divides by an empty sum and gives NaN, without an exception",
     .source = "sgl-project/sglang sgl-kernel/csrc/cpu/decode.cpp; idle batches are padded with 1",
     .severity = Severity::fault,
     .decode = is_at_least_one},
    {.id = "seq_lens.fits_the_table",
     .says = "encoder tokens and seq_lens[i] fit in a row of req_to_token",
     .why = "the kernel raises past the columns, or, with an encoder in front, reads the next row",
     .source = "sgl-project/sglang sgl-kernel/csrc/cpu/extend.cpp, seq_len <= max_context_len",
     .severity = Severity::fault,
     .extend = fits_the_table<ExtendCall>,
     .decode = fits_the_table<DecodeCall>},
};

}  // namespace

std::span<const Rule> seq_lens_rules() { return rules; }

}  // namespace attest
