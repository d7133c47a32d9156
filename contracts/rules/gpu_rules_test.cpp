#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "contracts/rules.hpp"
#include "contracts/rules/block_table.hpp"
#include "contracts/rules/broken_calls.hpp"
#include "contracts/rules/cache_layout.hpp"
#include "contracts/rules/call_shape.hpp"
#include "contracts/rules/cpu_cache.hpp"
#include "contracts/rules/custom_mask.hpp"
#include "contracts/rules/dense_arrays.hpp"
#include "contracts/rules/descales.hpp"
#include "contracts/rules/dtypes.hpp"
#include "contracts/rules/heads.hpp"
#include "contracts/rules/kv_indptr.hpp"
#include "contracts/rules/launch.hpp"
#include "contracts/rules/live_requests.hpp"
#include "contracts/rules/mla_schedule.hpp"
#include "contracts/rules/new_token_slots.hpp"
#include "contracts/rules/padding.hpp"
#include "contracts/rules/partitions.hpp"
#include "contracts/rules/prefill.hpp"
#include "contracts/rules/query_offsets.hpp"
#include "contracts/rules/scale_and_features.hpp"
#include "contracts/rules/seqused_k.hpp"
#include "contracts/rules/strides_and_layout.hpp"
#include "contracts/rules/tensor_memory.hpp"
#include "contracts/rules/visibility.hpp"
#include "contracts/rules/work_lists.hpp"
#include "contracts/signatures.hpp"
#include "contracts/signatures/sample_problems.hpp"

namespace attest {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<Rule> gpu_rules() {
  std::vector<Rule> rules;
  for (const auto group : {call_shape_rules,
                           query_offsets_rules,
                           seqused_k_rules,
                           block_table_rules,
                           kv_indptr_rules,
                           heads_rules,
                           strides_and_layout_rules,
                           dtypes_rules,
                           scale_and_features_rules,
                           descales_rules,
                           visibility_rules,
                           cache_layout_rules,
                           launch_rules,
                           padding_rules,
                           prefill_rules,
                           partitions_rules,
                           custom_mask_rules,
                           cpu_cache_rules,
                           tensor_memory_rules,
                           dense_arrays_rules,
                           mla_schedule_rules,
                           work_list_rules,
                           new_token_slots_rules,
                           live_requests_rules}) {
    rules.insert(rules.end(), group().begin(), group().end());
  }
  return rules;
}

std::vector<Finding> findings_of(std::string_view rule, const Call& call, const Problem& problem) {
  const SlotMap slots = make_slot_map(problem);
  std::vector<Finding> found = check(call, {problem, slots}).findings();
  std::erase_if(found, [&](const Finding& finding) { return finding.rule != rule; });
  return found;
}

UnifiedCall lowered(const Problem& problem) {
  return std::get<UnifiedCall>(lower_unified(problem, make_slot_map(problem)));
}

Report check_unified(const UnifiedCall& call, const Problem& problem,
                     const Capabilities& kernel = strict_capabilities()) {
  const SlotMap slots = make_slot_map(problem);
  return check(call, {problem, slots, kernel});
}

TEST(GpuRules, EachIsBrokenByAnExampleOfEverySignatureItAppliesTo) {
  std::set<std::pair<std::string_view, Signature>> shown;
  for (const BrokenCall& broken : broken_gpu_calls()) {
    shown.insert({broken.rule, signature_of(broken.call)});
  }
  for (const Rule& rule : gpu_rules()) {
    for (const Signature signature :
         {Signature::unified, Signature::mla_decode, Signature::batch_prefill,
          Signature::paged_ragged, Signature::legacy_extend, Signature::vllm_cpu}) {
      if (!rule.applies_to(signature) || rule.id == "cross_attention.has_a_kernel") continue;
      EXPECT_TRUE(shown.contains({rule.id, signature}))
          << rule.id << " has no broken call of " << name(signature)
          << ": add one to contracts/rules/broken_*.cpp";
    }
  }
}

TEST(GpuRules, FireOnTheirExamplesAndStaySilentOnTheSoundCall) {
  for (const BrokenCall& broken : broken_gpu_calls()) {
    ASSERT_EQ(problem_error(broken.problem), std::nullopt) << broken.rule;
    EXPECT_FALSE(findings_of(broken.rule, broken.call, broken.problem).empty())
        << broken.rule << ": " << broken.story;
    if (!broken.sound) continue;
    const SlotMap slots = make_slot_map(broken.problem);
    const Report report = check(*broken.sound, {broken.problem, slots});
    for (const Finding& finding : report.findings()) {
      ADD_FAILURE() << broken.rule << ", the sound call: " << to_string(finding);
    }
  }
}

TEST(GpuRules, NameThePlaceTheValueAndWhatItMustBe) {
  for (const BrokenCall& broken : broken_gpu_calls()) {
    for (const Finding& finding : findings_of(broken.rule, broken.call, broken.problem)) {
      EXPECT_FALSE(finding.where.empty() || finding.got.empty() || finding.expected.empty())
          << to_string(finding);
    }
  }
}

TEST(GpuRules, HaveIdsOfAFieldAndAFactAndASource) {
  std::set<std::string_view> ids;
  for (const Rule& rule : all_rules()) {
    EXPECT_TRUE(ids.insert(rule.id).second) << rule.id;
  }
  for (const Rule& rule : gpu_rules()) {
    EXPECT_EQ(std::count(rule.id.begin(), rule.id.end(), '.'), 1) << rule.id;
    EXPECT_FALSE(rule.says.empty() || rule.why.empty() || rule.source.empty()) << rule.id;
    EXPECT_EQ(rule.says.find('\n'), std::string_view::npos) << rule.id;
    EXPECT_TRUE(find_rule(rule.id)) << rule.id;
  }
}

TEST(GpuRules, SayThePrefixAndTheNewTokens) {
  Problem p = sample_problem(Mode::target_verify, {{131, 3}, {40, 5}});
  UnifiedCall call = lowered(p);
  call.seqused_k.values[0] = 131;
  const auto found = findings_of("seqused_k.counts_this_steps_tokens", call, p);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(to_string(found[0]),
            "wrong seqused_k.counts_this_steps_tokens: seqused_k[0] is 131, expected 134 = 131 "
            "committed + 3 new");
}

TEST(GpuRules, JudgeNarrowLengthsByTheKernel) {
  Problem p = sample_problem(Mode::decode, {{20, 1}});
  p.pool.num_pages = 1 << 20;  // 2048 bytes a page
  UnifiedCall call = lowered(p);
  call.seqused_k.meta.dtype = Dtype::int32;
  Capabilities widening;
  EXPECT_TRUE(check_unified(call, p).rejects());
  EXPECT_FALSE(check_unified(call, p, widening).rejects());
  EXPECT_EQ(check_unified(call, p, widening).findings().at(0).rule,
            "seqused_k.is_int64_past_2_gib");
  p.pool.num_pages -= 1;
  call = lowered(p);
  call.seqused_k.meta.dtype = Dtype::int32;
  EXPECT_FALSE(check_unified(call, p).rejects());
  EXPECT_EQ(check_unified(call, p).findings().at(0).rule, "seqused_k.is_int64");
}

TEST(GpuRules, TakeOneDescaleExpandedToEveryHead) {
  Problem p = sample_problem(Mode::decode, {{20, 1}, {7, 1}});
  p.model.kv_dtype = Dtype::fp8_e4m3fn;
  p.model.k_descale = 0.5;
  p.model.v_descale = 2;
  UnifiedCall call = lowered(p);
  for (std::optional<TensorMeta>* descale : {&call.k_descale, &call.v_descale}) {
    ASSERT_TRUE(*descale);
    (*descale)->shape = {2, p.model.num_kv_heads};
    (*descale)->strides = {0, 0};
  }
  for (const Finding& finding : check_unified(call, p).findings())
    ADD_FAILURE() << to_string(finding);
  call.k_descale->strides = {0, 1};  // a factor for each head is another call
  EXPECT_FALSE(findings_of("descales.are_the_layers", call, p).empty());
}

TEST(GpuRules, TakeAWindowOneKeyShortForAnOpenQuestion) {
  Problem p = sample_problem(Mode::decode, {{40, 1}});
  p.model.window = 8;
  const auto severities = [&](std::int64_t left) {
    UnifiedCall call = lowered(p);
    call.window_size = {left, 0};
    std::vector<Severity> found;
    for (const Finding& f : findings_of("window.is_the_layers", call, p)) {
      found.push_back(f.severity);
    }
    return found;
  };
  EXPECT_THAT(severities(7), ElementsAre());
  EXPECT_THAT(severities(6), ElementsAre(Severity::policy));
  EXPECT_THAT(severities(5), ElementsAre(Severity::wrong));
  EXPECT_THAT(severities(8), ElementsAre(Severity::wrong));
  EXPECT_THAT(severities(-1), ElementsAre(Severity::wrong));
  p.model.window = 1;  // -1 is not one short of 0: it is no window at all
  EXPECT_THAT(severities(-1), ElementsAre(Severity::wrong));
}

TEST(GpuRules, AdviseAgainstSinksOfFewerBits) {
  Problem p = sample_problem(Mode::extend, {{20, 3}});
  p.model.q_dtype = p.model.kv_dtype = p.model.out_dtype = Dtype::f16;
  p.model.sinks = true;
  const SlotMap slots = make_slot_map(p);
  auto unified = std::get<UnifiedCall>(lower_unified(p, slots));
  auto prefill = std::get<BatchPrefillCall>(lower_batch_prefill(p, slots));
  auto vllm = std::get<VllmCpuCall>(lower_vllm_cpu(p, slots));
  unified.sinks->dtype = prefill.sink_ptr->dtype = vllm.s_aux->dtype = Dtype::bf16;
  for (const Call& call : std::vector<Call>{unified, prefill, vllm}) {
    const auto found = findings_of("sinks.are_the_layers", call, p);
    ASSERT_EQ(found.size(), 1U) << name(signature_of(call));
    EXPECT_EQ(found[0].severity, Severity::policy);
  }
}

TEST(GpuRules, LeaveCellsOlderThanTheWindowAlone) {
  Problem p = sample_problem(Mode::decode, {{60, 1}});
  p.model.window = 20;
  UnifiedCall call = lowered(p);
  call.block_table.values[0] = call.block_table.values[2];  // tokens 0 .. 15
  EXPECT_TRUE(check_unified(call, p).findings().empty());
  call.block_table.values[0] = -1;
  EXPECT_FALSE(check_unified(call, p).rejects());
  call.block_table.values[2] = call.block_table.values[3];  // tokens 32 .. 47
  EXPECT_TRUE(check_unified(call, p).rejects());
}

TEST(GpuRules, LeavePaddedRowsToThePolicy) {
  Problem p = sample_problem(Mode::target_verify, {{35, 3}, {9, 3}});
  p.path = Path::replay;
  p.requests[1].live = false;
  UnifiedCall call = lowered(p);
  call.seqused_k.values[1] = 1;
  call.cu_seqlens_q.values[2] = 3;
  call.block_table.values[4] = 3;
  EXPECT_FALSE(check_unified(call, p).rejects());
  p.path = Path::capture;  // every row stands for a real one
  EXPECT_TRUE(check_unified(call, p).rejects());
}

TEST(GpuRules, NameTheRequestWhoseLengthIsWrong) {
  const Problem p = sample_problem(Mode::target_verify, {{35, 3}, {9, 5}, {4, 1}});
  UnifiedCall call = lowered(p);
  call.cu_seqlens_q.values = {0, 4, 8, 9};  // one row too many, one too few
  std::vector<std::string> texts;
  for (const Finding& f : findings_of("query_offsets.follow_the_real_lengths", call, p)) {
    texts.push_back(f.where + " is " + f.got + ", expected " + f.expected);
  }
  EXPECT_THAT(texts, ElementsAre("cu_seqlens_q[1] - cu_seqlens_q[0] is 4, expected 3, the new "
                                 "tokens of request 0",
                                 "cu_seqlens_q[2] - cu_seqlens_q[1] is 4, expected 5, the new "
                                 "tokens of request 1"));
}

TEST(GpuRules, SeeThatAPaddedRowShiftsTheLiveOnes) {
  Problem p = sample_problem(Mode::target_verify, {{35, 3}, {9, 3}});
  p.path = Path::replay;
  p.requests[0].live = false;
  UnifiedCall call = lowered(p);
  call.cu_seqlens_q.values = {0, 2, 5};
  const auto found = findings_of("query_offsets.follow_the_real_lengths", call, p);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_THAT(to_string(found[0]), HasSubstr("cu_seqlens_q[1] is 2, expected 3"));
}

TEST(GpuRules, CountMisplacedPagesTheyDoNotDescribe) {
  const Problem p = sample_problem(Mode::decode, {{200, 1}});
  UnifiedCall call = lowered(p);
  std::rotate(call.block_table.values.begin(), call.block_table.values.begin() + 1,
              call.block_table.values.begin() + 13);
  const auto found = findings_of("block_table.names_the_requests_pages", call, p);
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found.back().more, 10);
}

TEST(GpuRules, FindNewSlotsThatOverlapInPart) {
  const auto shared = [](std::int64_t second_committed) {
    const Problem p = sample_problem(Mode::target_verify, {{20, 2}, {second_committed, 2}});
    UnifiedCall call = lowered(p);
    call.block_table.values[4 + 1] = call.block_table.values[1];
    return findings_of("block_table.gives_each_request_its_own_new_slots", call, p).size();
  };
  EXPECT_EQ(shared(21), 1U);  // offsets 4, 5 and 5, 6
  EXPECT_EQ(shared(22), 0U);  // another's page, but not another's slots
}

TEST(GpuRules, SayWhichArraysACaptureLeftOut) {
  const Problem p = sample_problem(Mode::decode, {{20, 1}});
  UnifiedCall call = lowered(p);
  call.block_table.recorded = false;
  call.block_table.values.clear();
  EXPECT_TRUE(check_unified(call, p).findings().empty());
  EXPECT_THAT(check_unified(call, p).missing(), ElementsAre("block_table"));
}

TEST(GpuRules, TakeAnyPageSizeOfTheSamePool) {
  Problem p = sample_problem(Mode::decode, {{40, 1}});
  const SlotMap slots = make_slot_map(p);
  UnifiedCall call = lowered(p);  // as pages of 8
  for (TensorMeta* pool : {&call.k, &call.v}) {
    *pool = contiguous(pool->dtype, {pool->shape[0] * 2, 8, 2, 32});
  }
  std::vector<std::int64_t> cells;
  for (std::int64_t t = 0; t < 64; t += 8) {
    cells.push_back(t <= 40 ? slots.slot(0, t) / 8 : cells.back());
  }
  call.block_table = int_matrix(Dtype::int32, 1, 8, cells);
  EXPECT_TRUE(check_unified(call, p).findings().empty());
  std::swap(call.block_table.values[0], call.block_table.values[1]);
  EXPECT_TRUE(check_unified(call, p).rejects());
}

}  // namespace
}  // namespace attest
