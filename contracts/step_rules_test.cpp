#include "contracts/step_rules.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>

#include "contracts/signatures.hpp"
#include "contracts/signatures/sample_problems.hpp"

namespace attest {
namespace {

Problem windowed(Mode mode, const std::vector<Lengths>& lengths) {
  Problem p = sample_problem(mode, lengths);
  p.model.window = 8;
  p.model.head_dim = p.model.v_head_dim = 64;
  return p;
}

Call lowered(Signature signature, const Problem& p) {
  return std::get<Call>(lower(signature, p, make_slot_map(p)));
}

struct Sites {
  Problem prompt = windowed(Mode::extend, {{0, 12}, {3, 5}});
  Problem step = windowed(Mode::decode, {{20, 1}, {9, 1}});
  Problem replay = [] {
    Problem p = windowed(Mode::decode, {{20, 1}, {9, 1}, {0, 1}});
    p.path = Path::replay;
    p.requests.back().live = false;
    return p;
  }();
  Call prefill = lowered(Signature::batch_prefill, prompt);
  Call eager = lowered(Signature::unified, step);
  Call graph = lowered(Signature::unified, replay);

  Report check() const {
    const std::vector<SiteCall> calls = {
        {"the prompt", prefill, prompt}, {"the step", eager, step}, {"the replay", graph, replay}};
    return check_step(calls);
  }
};

/// Rules that fire after `change`.
std::set<std::string> fired(const std::function<void(Sites&)>& change) {
  Sites sites;
  change(sites);
  std::set<std::string> rules;
  const Report report = sites.check();
  for (const Finding& finding : report.findings()) rules.insert(finding.rule);
  return rules;
}

UnifiedCall& unified(Call& call) { return std::get<UnifiedCall>(call); }

TEST(StepRules, FindNothingInCallsThatAgree) {
  EXPECT_TRUE(fired([](Sites&) {}).empty());
}

TEST(StepRules, FireWhereOneCallDiffers) {
  using Rules = std::set<std::string>;
  EXPECT_EQ(fired([](Sites& s) { unified(s.eager).softmax_scale = 0.2; }),
            Rules{"step.scale_agrees"});
  EXPECT_EQ(fired([](Sites& s) { unified(s.graph).softcap = 30; }), Rules{"step.softcap_agrees"});
  EXPECT_EQ(fired([](Sites& s) { unified(s.graph).seqused_k.meta.dtype = Dtype::int32; }),
            Rules{"step.index_dtypes_agree"});
  EXPECT_EQ(fired([](Sites& s) {
              unified(s.eager).window_size[0] -= 1;
              unified(s.graph).window_size[0] -= 1;
            }),
            Rules{"step.window_agrees"});
  EXPECT_EQ(fired([](Sites& s) { unified(s.graph).seqused_k.values[1] = 5; }),
            Rules{"step.paths_read_alike"});
}

TEST(StepRules, BlameTheCallThatDiffersFromMost) {
  Sites sites;
  std::get<BatchPrefillCall>(sites.prefill).softmax_scale = 0.2;  // the first of three
  std::get<BatchPrefillCall>(sites.prefill).window_size[0] = 30;
  const Report report = sites.check();
  ASSERT_EQ(report.findings().size(), 2U);
  for (const Finding& f : report.findings()) {
    EXPECT_NE(f.where.find(" of the prompt"), std::string::npos) << to_string(f);
    EXPECT_NE(f.expected.find(", the layer's, as the step and 1 more have it"), std::string::npos)
        << to_string(f);
  }
}

TEST(StepRules, BlameTheCallsThatAreNotTheLayersHoweverMany) {
  Sites sites;
  unified(sites.eager).softmax_scale = unified(sites.graph).softmax_scale = 0.2;
  const Report report = sites.check();
  ASSERT_EQ(report.findings().size(), 2U);
  for (const Finding& f : report.findings()) {
    EXPECT_NE(f.expected.find(", the layer's, as the prompt has it"), std::string::npos)
        << to_string(f);
  }
  std::get<BatchPrefillCall>(sites.prefill).softmax_scale = 0.3;  // now nobody has the layer's
  const Report alone = sites.check();
  ASSERT_EQ(alone.findings().size(), 1U);
  EXPECT_NE(alone.findings().front().expected.find("0.2, as the step and 1 more have it"),
            std::string::npos)
      << to_string(alone.findings().front());
}

TEST(StepRules, BlameThePathThatReadsWhatNobodyMeant) {
  for (const bool eager : {false, true}) {
    Sites sites;
    unified(eager ? sites.eager : sites.graph).seqused_k.values[1] = 5;
    const Report report = sites.check();
    ASSERT_EQ(report.findings().size(), 1U);
    const Finding& f = report.findings().front();
    EXPECT_TRUE(f.where.ends_with(eager ? " of the step" : " of the replay")) << to_string(f);
    EXPECT_EQ(f.got, "5 visible keys");
    EXPECT_EQ(f.expected, std::string("8, as in ") + (eager ? "the replay" : "the step"));
  }
}

TEST(StepRules, LeaveOneKeyOfAWindowToPolicyAndRejectMore) {
  Sites sites;
  unified(sites.eager).window_size[0] = unified(sites.graph).window_size[0] = 6;
  EXPECT_FALSE(sites.check().rejects());
  unified(sites.eager).window_size[0] = unified(sites.graph).window_size[0] = -1;
  EXPECT_TRUE(sites.check().rejects());
}

TEST(StepRules, CountWindowsInTheWordsOfEachKernel) {
  Problem p = windowed(Mode::extend, {{9, 5}});
  Problem one = windowed(Mode::decode, {{20, 1}});
  const Call extend = lowered(Signature::extend, p);
  const Call legacy = lowered(Signature::legacy_extend, p);
  const Call prefill = lowered(Signature::batch_prefill, p);
  const Call decode = lowered(Signature::decode, one);
  const std::vector<SiteCall> calls = {
      {"a", extend, p}, {"b", legacy, p}, {"c", prefill, p}, {"d", decode, one}};
  EXPECT_TRUE(check_step(calls).findings().empty());
}

TEST(StepRules, SayWhatTheyAreAbout) {
  std::set<std::string_view> ids;
  for (const StepRule& rule : step_rules()) {
    EXPECT_TRUE(rule.id.starts_with("step."));
    EXPECT_TRUE(ids.insert(rule.id).second);
    EXPECT_FALSE(rule.says.empty() || rule.why.empty() || rule.source.empty()) << rule.id;
  }
}

TEST(StepRules, NeedTwoCalls) {
  const Sites sites;
  const std::vector<SiteCall> one = {{"alone", sites.eager, sites.step}};
  EXPECT_TRUE(check_step(one).findings().empty());
}

}  // namespace
}  // namespace attest
