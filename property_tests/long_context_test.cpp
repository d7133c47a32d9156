#include "property_tests/long_context.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "backends/registry.hpp"
#include "property_tests/judge.hpp"

namespace attest {
namespace {

using testing::HasSubstr;

TEST(SampledRows, AreTheEdgesOfBlocksAndSomeOthers) {
  const std::vector<std::int64_t> rows = sampled_rows(1000, 16, 7);
  EXPECT_EQ(rows.size(), 16U);
  EXPECT_TRUE(std::is_sorted(rows.begin(), rows.end()));
  EXPECT_THAT(rows, testing::IsSupersetOf({0, 63, 64, 999}));
  EXPECT_EQ(rows, sampled_rows(1000, 16, 7));
  EXPECT_NE(rows, sampled_rows(1000, 16, 8));
}

TEST(SampledRows, AreAllWhereThereAreFew) {
  EXPECT_EQ(sampled_rows(3, 8, 1), (std::vector<std::int64_t>{0, 1, 2}));
  EXPECT_EQ(sampled_rows(1, 8, 1), std::vector<std::int64_t>{0});
}

/// A small stand-in for the chunk of 64 tokens over 128k keys.
Case chunk_case() {
  Case c = case_of({.keys = 300, .new_tokens = 64}, 0);
  c.sampled_rows = 6;
  return c;
}

TEST(LongContexts, AreJudgedOnTheSampledRowsAndSayWhich) {
  const Backend& honest = *select_backends("scalar.unified").front();
  const Judgement judgement = judge(chunk_case(), honest);
  EXPECT_EQ(judgement.verdict, Verdict::pass) << judgement.reason;
  EXPECT_THAT(judgement.sampled, HasSubstr("rows 0, "));
  EXPECT_THAT(judgement.sampled, HasSubstr(", 63 of 64 compared"));
}

TEST(LongContexts, CouldHaveFailed) {
  // The null answers, against every backend's kind of data at a length that a test can afford.
  for (std::uint64_t index = 0; index < 8; ++index) {
    for (const char* const name : {"scalar.unified", "scalar.extend", "scalar.decode"}) {
      const Backend& honest = *select_backends(name).front();
      const Signature signature = honest.capabilities().signature;
      const std::int64_t drafts = signature == Signature::decode ? 1 : 4;
      const Case c = case_of({.keys = 4096, .new_tokens = drafts, .signature = signature}, index);
      const Judgement judgement = judge(c, honest);
      EXPECT_EQ(judgement.verdict, Verdict::pass) << name << index << judgement.reason;
    }
  }
}

TEST(LongContexts, StillCatchAFault) {
  const Backend& faulty = *select_backends("faulty-causal_one_too_short.unified").front();
  EXPECT_EQ(judge(chunk_case(), faulty).verdict, Verdict::mismatch);
}

TEST(LongContexts, ReachAMillionKeys) {
  for (const char* const name : {"hip.unified@host", "amx.decode@patch", "scalar.mla_decode"}) {
    const auto all = long_contexts(select_backends(name).front()->capabilities());
    ASSERT_FALSE(all.empty());
    for (const LongContext& context : all) {
      const Case c = case_of(context, 0);
      EXPECT_EQ(problem_error(c.problem), std::nullopt) << context.name();
      EXPECT_EQ(c.problem.max_kv_len(), context.keys);
    }
    const auto longest = std::max_element(
        all.begin(), all.end(),
        [](const LongContext& a, const LongContext& b) { return a.keys < b.keys; });
    EXPECT_EQ(longest->keys, std::int64_t{1} << 20);
  }
}

}  // namespace
}  // namespace attest
