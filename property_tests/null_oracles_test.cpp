#include "property_tests/null_oracles.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "property_tests/stub_backend.hpp"

namespace attest {
namespace {

using testing::HasSubstr;
using testing::Optional;

std::optional<std::string> verdict_of(const Case& c, const NumericsProfile& profile) {
  const TensorSource source(c.problem, c.recipe, c.seed, c.poison);
  const Attended meaning = attended(c.problem);
  const Expected expected = reference_attention(meaning, source);
  return why_untrusted({meaning, expected, profile, source});
}

NumericsProfile usual() { return StubBackend::inner().profile(); }

TEST(NullOracles, FailOnAnOrdinaryCase) {
  EXPECT_EQ(verdict_of(verify_case(), usual()), std::nullopt);
}

TEST(NullOracles, AreTheSixOfTheNumericsPage) {
  std::vector<std::string> ids;
  for (const NullOracle& oracle : all_null_oracles()) ids.emplace_back(oracle.id);
  EXPECT_THAT(ids,
              testing::ElementsAre("zeros", "mean_of_v", "previous_request", "last_key_ignored",
                                   "first_page_only", "identity_block_table"));
}

TEST(NullOracles, NameZerosWhereTheBoundSwallowsTheOutput) {
  NumericsProfile vague = usual();
  vague.exp_relative_error = 10;
  vague.z_limit.clear();
  EXPECT_THAT(verdict_of(verify_case(), vague), Optional(HasSubstr("null oracle zeros")));
}

TEST(NullOracles, NameTheMeanOfVWhereScoresAreFlat) {
  Case c = verify_case();
  c.problem.model.softmax_scale = 1e-6;
  EXPECT_THAT(verdict_of(c, usual()), Optional(HasSubstr("null oracle mean_of_v")));
}

TEST(NullOracles, NameTheLastKeyWhereALongContextDrownsIt) {
  Case c = verify_case();
  c.problem.requests.resize(1);
  c.problem.requests[0].committed = 20000;
  c.problem.requests[0].new_tokens = 1;
  c.problem.pool.num_pages = 1300;
  NumericsProfile bound_only = usual();
  bound_only.z_limit.clear();
  EXPECT_THAT(verdict_of(c, bound_only), Optional(HasSubstr("last_key_ignored")));
  EXPECT_EQ(verdict_of(c, usual()), std::nullopt) << "z still sees one key of 20,000";
}

TEST(NullOracles, NameTheIdentityTable) {
  Case c = verify_case();
  c.problem.requests.resize(1);
  c.problem.pool.placement = Placement::sequential;
  EXPECT_THAT(verdict_of(c, usual()), Optional(HasSubstr("identity_block_table")));
  c.problem.pool.placement = Placement::high;
  EXPECT_EQ(verdict_of(c, usual()), std::nullopt);
}

TEST(NullOracles, NameThePreviousRequestWhereTwoAreTheSame) {
  Case c = verify_case();
  c.problem.requests = {c.problem.requests[0], c.problem.requests[0]};
  EXPECT_THAT(verdict_of(c, usual()), Optional(HasSubstr("null oracle previous_request")));
}

TEST(NullOracles, DoNotHoldASingleKeyAgainstACase) {
  Case c = verify_case();
  c.problem.mode = Mode::decode;
  c.problem.requests.resize(1);
  c.problem.requests[0].committed = 0;
  c.problem.requests[0].new_tokens = 1;
  EXPECT_EQ(verdict_of(c, usual()), std::nullopt);
}

TEST(NullOracles, SayThatABatchOfPaddingHasNothingToCompare) {
  Case c = verify_case();
  for (Request& request : c.problem.requests) request.live = false;
  EXPECT_THAT(verdict_of(c, usual()), Optional(HasSubstr("no row has a value")));
}

}  // namespace
}  // namespace attest
