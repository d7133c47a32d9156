#include "property_tests/mutants/policy.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "property_tests/generators.hpp"
#include "property_tests/mutants/campaign.hpp"

namespace attest {
namespace {

/// An output of ordinary size, and one that is off everywhere by `by`.
struct Sample {
  std::vector<double> expected, got, naive, abs_v;
  Sample(double by, std::size_t wrong_from = 0) {
    for (int i = 0; i < 1000; ++i) {
      expected.push_back(std::sin(i));
      const bool wrong = expected.size() > wrong_from;
      got.push_back(expected.back() + (wrong ? (i % 2 == 0 ? by : -by) : 0));
      naive.push_back(expected.back() + 1e-3);
      abs_v.push_back(1);
    }
  }
  PolicyView view() const {
    return {.got = got,
            .expected = expected,
            .naive = naive,
            .abs_v = abs_v,
            .unit_roundoff = unit_roundoff(Dtype::bf16)};
  }
};

TEST(Policies, AreElevenOfTenSuitesEachWithItsSource) {
  std::set<std::string_view> names;
  for (const Policy& policy : all_policies()) {
    EXPECT_TRUE(names.insert(policy.name).second) << policy.name;
    EXPECT_NE(policy.source.find('/'), std::string_view::npos) << policy.name;
    EXPECT_FALSE(policy.data.empty() || policy.rule.empty() || policy.suite.empty());
    EXPECT_EQ(find_policy(policy.name), &policy);
  }
  EXPECT_EQ(names.size(), 11U);
  EXPECT_EQ(find_policy("no such policy"), nullptr);
}

TEST(Policies, PassWhatIsRightAndRefuseWhatIsFarOff) {
  for (const Policy& policy : all_policies()) {
    // 1e-4 is less than any of them resolves, 0.1 more than any of them forgives.
    EXPECT_EQ(policy.refuses(Sample(1e-4).view()), "") << policy.name;
    EXPECT_NE(policy.refuses(Sample(0.1).view()), "") << policy.name;
    EXPECT_NE(policy.refuses(Sample(std::nan("")).view()), "") << policy.name;
  }
}

TEST(Policies, ForgiveAsManyElementsAsTheySay) {
  const auto refuses = [](std::string_view name, const Sample& sample) {
    return find_policy(name)->refuses(sample.view());
  };
  EXPECT_EQ(refuses("aiter-unified", Sample(1, 990)), "");
  EXPECT_NE(refuses("aiter-unified", Sample(1, 980)), "");
  EXPECT_EQ(refuses("aiter-pa-mtp", Sample(1, 950)), "");
  EXPECT_NE(refuses("aiter-pa-mtp", Sample(1, 940)), "");
  EXPECT_NE(refuses("sglang-extend", Sample(1, 999)), "");
  EXPECT_NE(refuses("flash-attention", Sample(3e-3)), "");  // limit 2e-3 + 1e-5
  EXPECT_EQ(refuses("flash-attention", Sample(1.9e-3)), "");
  EXPECT_EQ(refuses("ggml", Sample(0.0158)), "");  // 2.5e-4 / 0.5
  EXPECT_NE(refuses("ggml", Sample(0.0162)), "");
}

TEST(LowPrecision, IsAsFarFromTheReferenceAsItsRoundings) {
  for (std::uint64_t i = 0; i < 12; ++i) {
    const Case c = generate(5, i,
                            {.signature = Signature::unified,
                             .max_kv = 120,
                             .max_requests = 2,
                             .recipe = Recipe::normal});
    if (is_fp8(c.problem.model.q_dtype) || is_fp8(c.problem.model.kv_dtype)) continue;
    const TensorSource source(c.problem, c.recipe, c.seed);
    const Attended meaning = attended(c.problem);
    const Expected expected = reference_attention(meaning, source);
    for (std::size_t r = 0; r < meaning.rows.size(); ++r) {
      if (meaning.rows[r].expect != RowExpectation::value) continue;
      const auto row = static_cast<std::int64_t>(r);
      const std::vector<double> naive = low_precision_attention(meaning, source, {row});
      ASSERT_EQ(naive.size(), static_cast<std::size_t>(expected.heads * expected.dim));
      for (std::size_t d = 0; d < naive.size(); ++d) {
        const std::size_t at = expected.index(row, 0, 0) + d;
        EXPECT_NEAR(naive[d], expected.out[at], 0.03 * (1 + expected.abs_v[at])) << c.origin;
      }
    }
  }
}

TEST(PolicyTrials, SeeALostKeyInAShortContextAndNotInALongOne) {
  const Mutant& mutant = *mutants_of("all", "metadata:seqused_k_short_by_one", false).front();
  TrialPlan plan{.keys = 512, .most_cases = 8, .most_seconds = 60};
  const Policy& aiter = *find_policy("aiter-unified");
  EXPECT_EQ(try_mutant(mutant, plan, aiter).outcome, Outcome::killed);
  plan.keys = 16384;
  plan.most_cases = 2;
  EXPECT_EQ(try_mutant(mutant, plan, aiter).outcome, Outcome::survived);
  EXPECT_FALSE(try_mutant(mutant, plan).numbers_by.empty());
}

}  // namespace
}  // namespace attest
