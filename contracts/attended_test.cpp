#include "contracts/attended.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace attest {
namespace {

using testing::HasSubstr;

Problem one_request(std::int64_t committed, std::int64_t new_tokens) {
  Problem p;
  p.pool = {.page_size = 16, .num_pages = 64};
  p.requests = {{.sequence = 5, .committed = committed, .new_tokens = new_tokens}};
  return p;
}

TEST(Attended, CausalIsAlignedToTheBottomRight) {
  const Attended a = attended(one_request(10, 3));
  ASSERT_EQ(a.rows.size(), 3U);
  EXPECT_EQ(a.rows[0].keys, (std::vector<KeyRun>{{5, 0, 11}}));
  EXPECT_EQ(a.rows[2].keys, (std::vector<KeyRun>{{5, 0, 13}}));
  EXPECT_EQ(a.rows[2].visible(), 13);
}

TEST(Attended, AWindowCountsTheQuerysOwnKey) {
  Problem p = one_request(10, 2);
  p.model.window = 4;
  EXPECT_EQ(attended(p).rows[1].keys, (std::vector<KeyRun>{{5, 8, 4}}));
  p.model.window = 1;
  EXPECT_EQ(attended(p).rows[1].keys, (std::vector<KeyRun>{{5, 11, 1}}));
  p.model.window = 1000;
  EXPECT_EQ(attended(p), [&] {
    Problem open = p;
    open.model.window.reset();
    return attended(open);
  }());
}

TEST(Attended, ATreeSeesThePrefixAndItsAncestors) {
  Problem p = one_request(10, 4);
  p.requests[0].tree_parent = {-1, 0, 0, 2};
  const Attended a = attended(p);
  EXPECT_EQ(a.rows[1].keys, (std::vector<KeyRun>{{5, 0, 12}}));
  EXPECT_EQ(a.rows[2].keys, (std::vector<KeyRun>{{5, 0, 11}, {5, 12, 1}}));
  EXPECT_EQ(a.rows[3].keys, (std::vector<KeyRun>{{5, 0, 11}, {5, 12, 2}}));
}

TEST(Attended, AChainTreeEqualsCausal) {
  Problem p = one_request(10, 4);
  const Attended causal = attended(p);
  p.requests[0].tree_parent = {-1, 0, 1, 2};
  EXPECT_EQ(attended(p), causal);
}

TEST(Attended, ASharedPrefixNamesTheOtherSequence) {
  Problem p = one_request(10, 1);
  p.requests[0].shared_prefix = 6;
  p.requests[0].shared_sequence = 2;
  EXPECT_EQ(attended(p).rows[0].keys, (std::vector<KeyRun>{{2, 0, 6}, {5, 6, 5}}));
  p.model.window = 3;
  EXPECT_EQ(attended(p).rows[0].keys, (std::vector<KeyRun>{{5, 8, 3}}));
}

TEST(Attended, CrossAttentionSeesExactlyTheEncoder) {
  Problem p = one_request(10, 2);
  p.model.cross_attention = true;
  p.requests[0].encoder_tokens = 7;
  for (const auto& row : attended(p).rows) {
    EXPECT_EQ(row.keys, (std::vector<KeyRun>{{5, -7, 7}}));
  }
}

TEST(Attended, PaddedRowsExpectAnything) {
  Problem p = one_request(10, 1);
  p.requests[0].live = false;
  EXPECT_EQ(attended(p).rows[0].expect, RowExpectation::any);
}

TEST(Attended, CanonicalMergesNeighboursAndKeepsDuplicates) {
  EXPECT_EQ(canonical({{1, 5, 2}, {1, 0, 5}, {0, 3, 0}}), (std::vector<KeyRun>{{1, 0, 7}}));
  EXPECT_EQ(canonical({{1, 0, 5}, {1, 2, 1}}), (std::vector<KeyRun>{{1, 0, 5}, {1, 2, 1}}));
}

TEST(Attended, ADifferenceNamesRowAndKeys) {
  const Attended truth = attended(one_request(134, 2));
  EXPECT_EQ(difference(truth, truth), std::nullopt);
  Attended got = truth;
  got.rows[1].keys = {{5, 0, 130}, {5, 134, 2}};
  EXPECT_THAT(difference(truth, got).value_or(""),
              HasSubstr("row 1 (request 0, token 1): expected keys [0, 136) of sequence 5; got "
                        "keys [0, 130) of sequence 5, keys [134, 136) of sequence 5"));
  got = truth;
  got.rows.pop_back();
  EXPECT_THAT(difference(truth, got).value_or(""), HasSubstr("expected value, got untouched"));
  got = truth;
  got.scale = 2;
  EXPECT_THAT(difference(truth, got).value_or(""), HasSubstr("scale"));
}

TEST(Attended, RowsThatExpectAnythingAreNotCompared) {
  Problem p = one_request(10, 2);
  p.requests[0].live = false;
  Attended got = attended(p);
  got.rows[0].keys.clear();
  EXPECT_EQ(difference(attended(p), got), std::nullopt);
}

}  // namespace
}  // namespace attest
