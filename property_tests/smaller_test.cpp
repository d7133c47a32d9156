#include <gtest/gtest.h>

#include <algorithm>

#include "contracts/rules.hpp"
#include "property_tests/generators.hpp"
#include "property_tests/smaller_parts.hpp"

namespace attest {
namespace {

constexpr std::uint64_t several = 60;

std::vector<Case> samples() {
  std::vector<Case> cases;
  for (const Signature signature : generated_signatures) {
    for (std::uint64_t i = 0; i < several; ++i) {
      cases.push_back(generate(11, i, {.signature = signature}));
    }
  }
  return cases;
}

TEST(Shrinking, LowersTheSizeAtEveryStep) {
  for (const Case& c : samples()) {
    for (const Case& candidate : smaller(c)) {
      EXPECT_TRUE(size_of(candidate) < size_of(c))
          << c.origin << ' ' << describe(candidate.problem);
      EXPECT_TRUE(size_of(candidate) >= CaseSize{});
    }
  }
}

TEST(Shrinking, ProposesOnlyLegalCasesWithCleanCalls) {
  for (const Case& c : samples()) {
    for (const Case& candidate : smaller(c)) {
      ASSERT_EQ(problem_error(candidate.problem), std::nullopt) << c.origin;
      const SlotMap slots = make_slot_map(candidate.problem);
      const auto call = call_of(candidate, slots);
      ASSERT_TRUE(std::holds_alternative<Call>(call)) << c.origin;
      const Report report = check(std::get<Call>(call), {candidate.problem, slots, {}});
      EXPECT_FALSE(report.rejects()) << c.origin << ' ' << describe(candidate.problem) << ' '
                                     << to_string(report.findings().front());
    }
  }
}

TEST(Shrinking, EndsAtOneRequestWithOneKeyWhenEverythingFails) {
  for (std::uint64_t i = 0; i < several; ++i) {
    const Case c = generate(12, i, {.signature = Signature::unified});
    const Shrunk shrunk = shrink(c, 2000, [](const Case&) { return true; });
    const Problem& p = shrunk.best.problem;
    EXPECT_EQ(p.requests.size(), 1U) << describe(p);
    EXPECT_EQ(p.max_kv_len(), 1) << describe(p);
    EXPECT_EQ(p.model.num_q_heads, 1) << describe(p);
    EXPECT_EQ(p.model.head_dim, 32) << describe(p);
    EXPECT_FALSE(p.model.window || p.model.softcap > 0 || p.model.sinks) << describe(p);
    EXPECT_EQ(shrunk.best.recipe, Recipe::normal);
    EXPECT_LT(shrunk.trials, 200);
    EXPECT_TRUE(smaller(shrunk.best).empty()) << describe(smaller(shrunk.best)[0].problem);
  }
}

TEST(Shrinking, FindsTheSmallestBatchThatIsStillUneven) {
  const auto uneven = [](const Case& c) {
    return std::any_of(c.problem.requests.begin(), c.problem.requests.end(), [&](const Request& r) {
      return r.new_tokens != c.problem.requests[0].new_tokens;
    });
  };
  int found = 0;
  for (std::uint64_t i = 0; i < several; ++i) {
    const Case c = generate(13, i, {.signature = Signature::extend});
    if (!uneven(c)) continue;
    ++found;
    const Problem p = shrink(c, 2000, uneven).best.problem;
    ASSERT_EQ(p.requests.size(), 2U) << describe(p);
    EXPECT_EQ(p.total_new_tokens(), 3) << describe(p);
    EXPECT_EQ(p.max_kv_len(), 2) << describe(p);
  }
  EXPECT_GT(found, 10);
}

TEST(Shrinking, KeepsTheFaultApplicable) {
  int found = 0;
  for (std::uint64_t i = 0; i < several; ++i) {
    Case c = generate(14, i, {.signature = Signature::unified});
    c.fault = "window_one_key_short";
    if (!std::holds_alternative<Call>(call_of(c, make_slot_map(c.problem)))) continue;
    ++found;
    const Shrunk shrunk = shrink(c, 2000, [](const Case&) { return true; });
    EXPECT_TRUE(shrunk.best.problem.model.window) << describe(shrunk.best.problem);
    EXPECT_TRUE(
        std::holds_alternative<Call>(call_of(shrunk.best, make_slot_map(shrunk.best.problem))));
  }
  EXPECT_GT(found, 5);
}

TEST(Shrinking, KeepsAWindowsEdgeAmongTheKeys) {
  // The fault needs a key just outside the window: neither window nor keys can shrink alone.
  const auto one_outside = [](const Case& c) {
    const Problem& p = c.problem;
    return p.model.window && p.max_kv_len() == *p.model.window + 1;
  };
  Case c = generate(18, 0, {.signature = Signature::extend});
  Problem& p = c.problem;
  p = {};
  p.mode = Mode::extend;
  p.model.window = 128;
  p.requests = {{.committed = 126, .new_tokens = 3}};
  p.pool.num_pages = pages_needed(p) + 1;
  ASSERT_TRUE(one_outside(c));
  const Shrunk shrunk = shrink(c, 600, one_outside);
  EXPECT_EQ(shrunk.best.problem.max_kv_len(), 2) << describe(shrunk.best.problem);
  EXPECT_EQ(shrunk.best.problem.model.window, 1) << describe(shrunk.best.problem);
}

TEST(Shrinking, StopsAtTheTrialLimit) {
  const Case c = generate(15, 0, {.signature = Signature::unified});
  EXPECT_EQ(shrink(c, 3, [](const Case&) { return false; }).trials, 3);
  EXPECT_EQ(shrink(c, 0, [](const Case&) { return true; }).steps, 0);
}

TEST(Shrinking, ReducesALargeBatchWithFewCandidates) {
  Case c = generate(17, 0, {.signature = Signature::unified});
  const Request one = c.problem.requests[0];
  c.problem.requests.clear();
  c.problem.pool.slots.clear();
  for (std::int64_t i = 0; i < 200; ++i) {
    c.problem.requests.push_back(one);
    c.problem.requests.back().sequence = i + 1;
    c.problem.requests.back().shared_prefix = 0;
  }
  c.problem.mode = Mode::mixed;
  c.problem.topk = 1;
  c.problem.pool.num_pages = pages_needed(c.problem) + 1;
  EXPECT_LT(smaller(c).size(), 60U);
  const auto has_sequence_118 = [](const Case& candidate) {
    return std::any_of(candidate.problem.requests.begin(), candidate.problem.requests.end(),
                       [](const Request& r) { return r.sequence == 118; });
  };
  const Shrunk shrunk = shrink(c, 1000, has_sequence_118);
  EXPECT_EQ(shrunk.best.problem.requests.size(), 1U);
  EXPECT_LT(shrunk.trials, 200);
}

TEST(Shrinking, LeavesExplicitArgumentsAlone) {
  Case c = generate(16, 0, {.signature = Signature::unified});
  c.call = std::get<Call>(call_of(c, make_slot_map(c.problem)));
  EXPECT_TRUE(smaller(c).empty());
}

}  // namespace
}  // namespace attest
