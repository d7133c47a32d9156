// The rules of extend and decode: each refuses its broken calls, and none speaks up about what
// lower() makes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "contracts/rules.hpp"
#include "contracts/rules/cpu_examples.hpp"
#include "contracts/signatures.hpp"
#include "contracts/signatures/sample_problems.hpp"

namespace attest {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

Report report_of(const Call& call, const Problem& p) {
  const SlotMap slots = make_slot_map(p);
  return check(call, Truth{p, slots});
}

Call lowered(Signature signature, const Problem& p) {
  EXPECT_EQ(problem_error(p), std::nullopt);
  Lowered<Call> call = lower(signature, p, make_slot_map(p));
  if (auto* refused = std::get_if<Unsupported>(&call)) ADD_FAILURE() << refused->reason;
  return std::holds_alternative<Call>(call) ? std::get<Call>(call) : Call{};
}

std::string all_text(const Report& report) {
  std::string text;
  for (const Finding& finding : report.findings()) text += to_string(finding) + "\n";
  return text;
}

std::vector<BrokenCpuCall> broken_calls() {
  std::vector<BrokenCpuCall> all = broken_extend_calls();
  for (const auto& more : {broken_tree_calls(), broken_decode_calls(), broken_memory_calls()}) {
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

TEST(CpuRules, RefuseTheirBrokenCalls) {
  for (const BrokenCpuCall& broken : broken_calls()) {
    ASSERT_TRUE(find_rule(broken.rule)) << broken.rule;
    EXPECT_EQ(problem_error(broken.problem), std::nullopt) << broken.story;
    const Report report = report_of(broken.call, broken.problem);
    const bool found = std::ranges::any_of(report.findings(), [&](const Finding& f) {
      return f.rule == broken.rule && f.severity == broken.severity && !f.where.empty() &&
             !f.got.empty() && !f.expected.empty();
    });
    EXPECT_TRUE(found) << broken.rule << " (" << name(broken.severity) << "): " << broken.story
                       << "; the report says\n"
                       << all_text(report);
  }
}

TEST(CpuRules, EachIsBrokenByACallOfEverySignatureItJudges) {
  const std::vector<BrokenCpuCall> calls = broken_calls();
  for (const Rule& rule : all_rules()) {
    for (const Signature signature : {Signature::extend, Signature::decode}) {
      const bool has = std::ranges::any_of(calls, [&](const BrokenCpuCall& c) {
        return c.rule == rule.id && signature_of(c.call) == signature;
      });
      EXPECT_EQ(rule.applies_to(signature), has)
          << rule.id << (has ? " does not judge " : " has no broken call of ") << name(signature)
          << ": contracts/rules/cpu_examples_*.cpp must hold one where it does, none otherwise";
    }
  }
}

void expect_silence(Signature signature, const Problem& p) {
  EXPECT_THAT(all_text(report_of(lowered(signature, p), p)), IsEmpty()) << describe(p);
}

Problem full_extend() {
  Problem p = sample_problem(Mode::target_verify, {{131, 3}, {40, 5}, {15, 1}, {0, 4}});
  p.requests[3].live = false;
  p.requests[1].shared_prefix = 32;
  p.requests[1].shared_sequence = 3;
  p.model.window = 20;
  p.model.sinks = true;
  fit_pool(p);
  return p;
}

TEST(CpuRules, AreSilentAboutEveryModeOfExtend) {
  expect_silence(Signature::extend, full_extend());
  expect_silence(Signature::extend, sample_problem(Mode::mixed, {{64, 1}, {0, 70}, {127, 1}}));
  expect_silence(Signature::extend, sample_problem(Mode::draft_extend_v2, {{15, 5}, {9, 0}}));
  expect_silence(Signature::extend, sample_mla_problem(Mode::target_verify, {{31, 4}}));
  Problem tree = sample_problem(Mode::target_verify, {{33, 5}, {7, 5}});
  tree.topk = 2;
  tree.requests[0].tree_parent = {-1, 0, 0, 1, 2};
  expect_silence(Signature::extend, tree);
  Problem cross = full_extend();
  cross.model.window.reset();
  cross.model.cross_attention = true;
  for (Request& r : cross.requests) r.encoder_tokens = 9;
  fit_pool(cross);
  expect_silence(Signature::extend, cross);
}

TEST(CpuRules, AreSilentAboutEveryModeOfDecode) {
  Problem p = sample_problem(Mode::decode, {{60, 1}, {0, 1}, {15, 1}});
  p.requests[1].live = false;
  p.model.window = 8;
  p.model.softcap = 50;
  fit_pool(p);
  expect_silence(Signature::decode, p);
  expect_silence(Signature::decode, sample_mla_problem(Mode::decode, {{31, 1}, {9, 1}}));
  Problem drafts = sample_problem(Mode::draft_decode, {{41, 1}, {41, 1}});
  for (Request& r : drafts.requests) r.shared_prefix = 32;
  fit_pool(drafts);
  expect_silence(Signature::decode, drafts);
  Problem encoder = sample_problem(Mode::decode, {{41, 1}, {4, 1}});
  encoder.requests[0].encoder_tokens = 5;
  fit_pool(encoder);
  expect_silence(Signature::decode, encoder);
}

TEST(CpuRules, AreSilentAboutSlotsPastInt32WithInt64Tables) {
  for (const BrokenCpuCall& broken : broken_calls()) {
    if (broken.rule != "req_to_token.dtype_holds_the_element_offsets") continue;
    expect_silence(signature_of(broken.call), broken.problem);
  }
}

TEST(CpuRules, SayWhatTheTotalIsMadeOf) {
  const Problem p = sample_problem(Mode::target_verify, {{131, 3}});
  Call call = lowered(Signature::extend, p);
  std::get<ExtendCall>(call).seq_lens.values[0] = 131;
  const std::string text = all_text(report_of(call, p));
  EXPECT_THAT(text, HasSubstr("wrong seq_lens.counts_committed_and_new_tokens: seq_lens[0] is 131, "
                              "expected 134 = 131 committed + 3 new"));
  EXPECT_THAT(text, HasSubstr("seq_lens[0] - extend_seq_lens[0] is 128, expected 131 committed"));
}

TEST(CpuRules, JudgeArraysThatWereNotRecordedByWhatIsThere) {
  const Problem p = sample_problem(Mode::target_verify, {{131, 3}});
  Call call = lowered(Signature::extend, p);
  auto& extend = std::get<ExtendCall>(call);
  extend.req_to_token.values.clear();
  extend.req_to_token.recorded = false;
  Report report = report_of(call, p);
  EXPECT_THAT(report.findings(), IsEmpty());
  EXPECT_THAT(report.missing(), testing::ElementsAre("req_to_token"));
  for (IntArray ExtendCall::* array :
       {&ExtendCall::seq_lens, &ExtendCall::extend_seq_lens, &ExtendCall::extend_start_loc,
        &ExtendCall::req_pool_indices}) {
    (extend.*array).values.clear();
    (extend.*array).recorded = false;
  }
  report = report_of(call, p);
  EXPECT_THAT(report.findings(), IsEmpty());
  EXPECT_EQ(report.missing().size(), 5U);
}

TEST(CpuRules, TakeKernelsAtTheirWord) {
  const Problem p = sample_problem(Mode::target_verify, {{6, 3}});
  const SlotMap slots = make_slot_map(p);
  Call call = lowered(Signature::extend, p);
  std::get<ExtendCall>(call).max_len_extend = 4;
  Capabilities covers = strict_capabilities();
  covers.max_len_is_exact = false;
  EXPECT_TRUE(check(call, Truth{p, slots}).rejects());
  EXPECT_FALSE(check(call, {p, slots, covers}).rejects());
  EXPECT_FALSE(check(call, {p, slots, covers}).findings().empty());
}

TEST(CpuRules, LeavePaddedRowsToTheirSizes) {
  Problem p = sample_problem(Mode::decode, {{6, 1}, {0, 1}});
  p.requests[1].live = false;
  fit_pool(p);
  Call call = lowered(Signature::decode, p);
  std::get<DecodeCall>(call).seq_lens.values[1] = 7;
  std::get<DecodeCall>(call).encoder_lens = int_array(Dtype::int64, {0, 3});
  EXPECT_THAT(all_text(report_of(call, p)), IsEmpty());
}

TEST(CpuRules, LookAtEveryVisibleCell) {
  const Problem p = sample_problem(Mode::decode, {{21, 1}, {34, 1}});
  const SlotMap slots = make_slot_map(p);
  const Call good = lowered(Signature::decode, p);
  const auto& call = std::get<DecodeCall>(good);
  for (std::size_t i = 0; i < 2; ++i) {
    for (std::int64_t t = 0; t < p.requests[i].kv_len(); ++t) {
      Call bad = good;
      const std::int64_t cell = call.req_pool_indices[i] * call.req_to_token.size(1) + t;
      std::get<DecodeCall>(bad).req_to_token.values[static_cast<std::size_t>(cell)] ^= 1;
      EXPECT_TRUE(check(bad, Truth{p, slots}).found("req_to_token.names_the_tokens_slots")) << t;
    }
  }
}

TEST(CpuRules, TakeOneSlotPastAWindowedPoolForAFault) {
  Problem p = sample_problem(Mode::decode, {{7, 1}});
  p.model.window = 4;
  p.pool.page_size = 1;
  p.pool.num_pages = 16;
  p.pool.slots = {{{-1, 2}, {3, 6}}};
  Call call = lowered(Signature::decode, p);
  auto& decode = std::get<DecodeCall>(call);
  const std::int64_t row = decode.req_pool_indices[0] * decode.req_to_token.size(1);
  decode.req_to_token.values[static_cast<std::size_t>(row + 5)] = 100;
  EXPECT_THAT(all_text(report_of(call, p)),
              HasSubstr("fault req_to_token.names_slots_of_the_pool: req_to_token[2][5] is 100"));
}

TEST(CpuRules, CompareSlotsWithThePoolTheCallHas) {
  const Problem p = sample_problem(Mode::decode, {{21, 1}});
  Call call = lowered(Signature::decode, p);
  auto& decode = std::get<DecodeCall>(call);
  decode.k_buffer = contiguous(Dtype::bf16, {1, 2, 32});
  decode.v_buffer = decode.k_buffer;
  EXPECT_TRUE(report_of(call, p).found("req_to_token.names_slots_of_the_pool"));
}

TEST(CpuRules, RejectANegativePrefixInAPaddedRow) {
  Problem p = sample_problem(Mode::target_verify, {{6, 3}, {0, 3}});
  p.requests[1].live = false;
  fit_pool(p);
  Call call = lowered(Signature::extend, p);
  std::get<ExtendCall>(call).seq_lens.values[1] = 1;
  EXPECT_THAT(all_text(report_of(call, p)),
              HasSubstr("fault seq_lens.leaves_the_committed_prefix"));
}

TEST(CpuRules, LetARequestWithoutNewTokensStartAnywhere) {
  const Problem p = sample_problem(Mode::draft_extend_v2, {{6, 3}, {9, 0}});
  Call call = lowered(Signature::extend, p);
  std::get<ExtendCall>(call).extend_start_loc.values[1] = 0;
  EXPECT_THAT(all_text(report_of(call, p)), IsEmpty());
}

TEST(CpuRules, OnlyAdviseOnInt32TablesWhereDecodeMultipliesInInt64) {
  Problem p = sample_problem(Mode::decode, {{6, 1}});
  p.pool.page_size = 1;
  p.pool.num_pages = (std::int64_t{1} << 31) / 64 + 64;
  p.pool.placement = Placement::high;
  Call call = lowered(Signature::decode, p);
  std::get<DecodeCall>(call).req_to_token.meta.dtype = Dtype::int32;
  EXPECT_THAT(all_text(report_of(call, p)),
              testing::StartsWith("policy req_to_token.dtype_holds_the_element_offsets"));
}

}  // namespace
}  // namespace attest
