#include "property_tests/case.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "property_tests/stub_backend.hpp"

namespace attest {
namespace {

using testing::HasSubstr;

Fixture two_sided() {
  Fixture fixture;
  fixture.name = "a_bug";
  fixture.trace = {verify_case().problem};
  fixture.signature = "unified";
  fixture.fault = "window_missing";
  fixture.recipe = Recipe::needle;
  fixture.seed = 9;
  fixture.poison = {Poison::loud, true};
  fixture.faulty = Expectation{Verdict::rejected, Verdict::mismatch, {}};
  return fixture;
}

Call some_call() {
  const Case c = verify_case();
  return std::get<Call>(call_of(c, make_slot_map(c.problem)));
}

TEST(Cases, TakeTheFaultFromAFixtureOnTheFaultySideOnly) {
  const Case faulty = case_of(two_sided(), true);
  EXPECT_EQ(faulty.fault, "window_missing");
  EXPECT_EQ(faulty.problem, verify_case().problem);
  EXPECT_EQ(faulty.signature, Signature::unified);
  EXPECT_EQ(faulty.recipe, Recipe::needle);
  EXPECT_EQ(faulty.seed, 9U);
  EXPECT_EQ(faulty.poison, (PoisonPlan{Poison::loud, true}));
  EXPECT_EQ(case_of(two_sided(), false).fault, "");
}

TEST(Cases, TakeExplicitArgumentsOnTheFaultySideOrTheOnlyOne) {
  Fixture fixture = two_sided();
  fixture.fault.clear();
  fixture.call = some_call();
  EXPECT_TRUE(case_of(fixture, true).call.has_value());
  EXPECT_FALSE(case_of(fixture, false).call.has_value()) << "the right call is the lowering";
  fixture.faulty.reset();
  EXPECT_TRUE(case_of(fixture, false).call.has_value()) << "the only side keeps its arguments";
}

TEST(Cases, RefuseFixturesTheyCannotJudge) {
  Fixture steps = two_sided();
  steps.trace.assign(3, steps.trace.front());
  EXPECT_THROW(case_of(steps, false), FixtureError);
  Fixture unknown = two_sided();
  unknown.signature = "extended";
  EXPECT_THROW(case_of(unknown, false), FixtureError);
}

/// Two verify steps: the first one's drafts, then as many more each.
Fixture captured_and_replayed(std::int64_t more) {
  Fixture fixture = two_sided();
  fixture.fault = "lengths_of_the_captured_step";
  Problem replayed = fixture.trace.front();
  for (Request& request : replayed.requests) request.new_tokens += more;
  fixture.trace.push_back(replayed);
  return fixture;
}

TEST(Cases, OfTwoStepsAreTheSecondWithWhatTheFirstLeft) {
  const Fixture fixture = captured_and_replayed(1);
  const Case fixed = case_of(fixture, false);
  EXPECT_EQ(fixed.problem, fixture.trace.back());
  EXPECT_FALSE(fixed.call);
  const Case faulty = case_of(fixture, true);
  EXPECT_EQ(faulty.problem, fixture.trace.back());
  EXPECT_EQ(faulty.fault, "");
  ASSERT_TRUE(faulty.call);
  const auto first = lower_unified(fixture.trace[0], make_slot_map(fixture.trace[0]));
  const auto& captured = std::get<UnifiedCall>(first);
  const auto& replayed = std::get<UnifiedCall>(*faulty.call);
  EXPECT_EQ(replayed.cu_seqlens_q, captured.cu_seqlens_q);
  EXPECT_EQ(replayed.max_seqlen_q, captured.max_seqlen_q);
  EXPECT_EQ(replayed.q.shape[0], fixture.trace[1].total_new_tokens());
}

TEST(Cases, OfTwoStepsRefuseAFaultThatIsNotBetweenThemOrChangesNothing) {
  EXPECT_THROW(case_of(captured_and_replayed(0), true), FixtureError);
  Fixture alone = captured_and_replayed(1);
  alone.fault = "window_missing";
  EXPECT_THROW(case_of(alone, true), FixtureError);
}

TEST(Cases, ComeBackFromTheirFixture) {
  Case c = verify_case();
  c.recipe = Recipe::recall;
  c.poison = {Poison::loud, false};
  const Fixture fixture = fixture_of(c, "faulty-x.unified@cpu", Verdict::mismatch, {});
  EXPECT_EQ(fixture.name, "faulty-x.unified-cpu-seed-1-case-2");
  EXPECT_EQ(fixture.fixed, (Expectation{Verdict::mismatch, Verdict::mismatch, {}}));
  EXPECT_FALSE(fixture.faulty);
  const Case back = case_of(parse_fixture(to_json(fixture), fixture.name + ".json"), false);
  EXPECT_EQ(back.problem, c.problem);
  EXPECT_EQ(back.recipe, c.recipe);
  EXPECT_EQ(back.seed, c.seed);
  EXPECT_EQ(back.poison, c.poison);
}

TEST(Cases, ExpectARejectionWhereARuleThatRejectsFired) {
  Case c = verify_case();
  c.fault = "seqused_k_short_by_one";
  const std::string rule = "seqused_k.counts_this_steps_tokens";
  const Fixture reported = fixture_of(c, "scalar.unified@cpu", Verdict::mismatch, {rule});
  ASSERT_TRUE(reported.faulty);
  EXPECT_EQ(reported.faulty->enforced, Verdict::rejected);
  EXPECT_EQ(reported.faulty->reported, Verdict::mismatch);
  EXPECT_EQ(reported.fixed, Expectation{}) << "without the fault it passes";
  const Fixture enforced = fixture_of(c, "scalar.unified@cpu", Verdict::rejected, {rule});
  EXPECT_EQ(enforced.faulty, reported.faulty);
}

TEST(Cases, SayWhyTheyHaveNoCall) {
  Case c = verify_case();
  c.fault = "window_missing";
  const auto none = call_of(c, make_slot_map(c.problem));
  ASSERT_TRUE(std::holds_alternative<Unsupported>(none));
  EXPECT_THAT(std::get<Unsupported>(none).reason, HasSubstr("changes nothing"));
  c.problem.model.window = 20;
  EXPECT_TRUE(std::holds_alternative<Call>(call_of(c, make_slot_map(c.problem))));
}

}  // namespace
}  // namespace attest
