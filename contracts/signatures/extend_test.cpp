#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "contracts/rules.hpp"
#include "contracts/signatures.hpp"
#include "contracts/signatures/sample_problems.hpp"

namespace attest {
namespace {

using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::int64_t top = std::numeric_limits<std::int64_t>::max();

ExtendCall lowered(const Problem& p) {
  EXPECT_EQ(problem_error(p), std::nullopt);
  Lowered<ExtendCall> call = lower_extend(p, make_slot_map(p));
  if (auto* refused = std::get_if<Unsupported>(&call)) ADD_FAILURE() << refused->reason;
  return std::holds_alternative<ExtendCall>(call) ? std::get<ExtendCall>(call) : ExtendCall{};
}

std::string reason(const Problem& p) {
  const Lowered<ExtendCall> call = lower_extend(p, make_slot_map(p));
  const auto* refused = std::get_if<Unsupported>(&call);
  return refused ? refused->reason : "supported";
}

Attended read_back(const ExtendCall& call, const Problem& p) {
  return read(call, p, make_slot_map(p));
}

void expect_round_trip(const Problem& p) {
  const Attended truth = attended(p);
  const Attended got = read_back(lowered(p), p);
  EXPECT_EQ(difference(truth, got), std::nullopt);
  EXPECT_TRUE(truth == got);
}

Problem uneven_verify() {
  return sample_problem(Mode::target_verify, {{131, 3}, {40, 5}, {15, 1}});
}

/// Two requests, trees of five tokens: a root with two branches, and a star.
Problem tree_verify() {
  Problem p = sample_problem(Mode::target_verify, {{33, 5}, {7, 5}});
  p.topk = 2;
  p.requests[0].tree_parent = {-1, 0, 0, 1, 2};
  p.requests[1].tree_parent = {-1, 0, 0, 0, 0};
  return p;
}

TEST(Extend, ReadsBackEveryModeItServes) {
  expect_round_trip(sample_problem(Mode::extend, {{0, 50}, {33, 20}, {64, 1}}));
  expect_round_trip(sample_problem(Mode::mixed, {{64, 1}, {0, 70}, {127, 1}}));
  expect_round_trip(uneven_verify());
  expect_round_trip(sample_problem(Mode::draft_extend_v2, {{15, 5}, {100, 2}, {9, 0}}));
}

TEST(Extend, ReadsBackTreesPaddingSharingAndFeatures) {
  expect_round_trip(tree_verify());
  Problem p = uneven_verify();
  p.requests[1].live = false;
  p.requests[2].shared_prefix = 9;
  p.requests[2].shared_sequence = 4;
  p.model.window = 20;
  p.model.softcap = 30;
  p.model.sinks = true;
  p.model.v_head_dim = 64;
  expect_round_trip(p);
}

TEST(Extend, ReadsBackMlaAndStridedPools) {
  expect_round_trip(sample_mla_problem(Mode::target_verify, {{31, 4}, {2, 4}}));
  Problem p = uneven_verify();
  p.pool.k = {.page = 16 * 200, .slot = 200, .head = 40};
  expect_round_trip(p);
}

TEST(Extend, ReadsBackEncoderAndCrossAttention) {
  Problem p = uneven_verify();
  p.requests[0].encoder_tokens = 5;
  p.requests[2].encoder_tokens = 40;
  fit_pool(p);
  expect_round_trip(p);
  p.model.cross_attention = true;
  p.requests[1].encoder_tokens = 1;
  fit_pool(p);
  expect_round_trip(p);
  EXPECT_FALSE(lowered(p).k_extend.has_value());
}

TEST(Extend, OffsetsFarBeforeRowZeroTakeNoTime) {
  const Problem p = sample_problem(Mode::extend, {{18, 3}, {5, 2}});
  const SlotMap slots = make_slot_map(p);
  ExtendCall call = std::get<ExtendCall>(lower_extend(p, slots));
  constexpr std::int64_t huge = std::numeric_limits<std::int64_t>::max();
  call.extend_start_loc.values = {-(std::int64_t{1} << 40), -huge};
  call.extend_seq_lens.values = call.seq_lens.values = {huge, huge};
  call.max_len_extend = huge;
  call.req_to_token.meta.shape[1] = huge;
  EXPECT_EQ(read(call, p, slots).rows.size(), 5U);
  EXPECT_TRUE(check(call, {p, slots}).rejects());
}

TEST(Extend, CountsCommittedAndNewTokensInSeqLens) {
  const ExtendCall call = lowered(uneven_verify());
  EXPECT_THAT(call.seq_lens.values, ElementsAre(134, 45, 16));
  EXPECT_THAT(call.extend_seq_lens.values, ElementsAre(3, 5, 1));
  EXPECT_THAT(call.extend_start_loc.values, ElementsAre(0, 3, 8));
  EXPECT_EQ(call.max_len_extend, 5);
  EXPECT_EQ(call.seq_lens.meta.dtype, Dtype::int64);
  EXPECT_EQ(call.req_pool_indices.meta.dtype, Dtype::int64);
  EXPECT_EQ(call.extend_seq_lens.meta.dtype, Dtype::int32);
  EXPECT_EQ(call.req_to_token.meta.dtype, Dtype::int32);
}

TEST(Extend, GivesRequestsTableRowsThatAreNotTheirIndex) {
  Problem p = uneven_verify();
  p.requests[1].live = false;
  const ExtendCall call = lowered(p);
  EXPECT_EQ(call.req_pool_indices[1], 0) << "row 0 serves padded rows";
  EXPECT_NE(call.req_pool_indices[0], 0);
  EXPECT_NE(call.req_pool_indices[2], 2);
  EXPECT_GT(call.req_to_token.size(0), 4) << "other requests have rows too";
}

TEST(Extend, TakesInt64IndicesWhereAnInt32ProductWraps) {
  Problem p = uneven_verify();
  p.pool.page_size = 1;
  p.pool.num_pages =
      (std::int64_t{1} << 31) / 64;  // last slot * stride 64 is one row short of 2^31
  EXPECT_EQ(lowered(p).req_to_token.meta.dtype, Dtype::int32);
  p.pool.num_pages += 1;
  const ExtendCall call = lowered(p);
  EXPECT_EQ(call.req_to_token.meta.dtype, Dtype::int64);
  EXPECT_EQ(call.extend_seq_lens.meta.dtype, Dtype::int64);
  EXPECT_EQ(call.extend_start_loc.meta.dtype, Dtype::int64);
}

TEST(Extend, MasksTreesRowByRow) {
  const ExtendCall call = lowered(tree_verify());
  ASSERT_TRUE(call.tree_mask.has_value());
  const std::vector<std::int64_t> first(call.tree_mask->values.begin(),
                                        call.tree_mask->values.begin() + 25);
  EXPECT_THAT(first, ElementsAre(1, 0, 0, 0, 0,  //
                                 1, 1, 0, 0, 0,  //
                                 1, 0, 1, 0, 0,  //
                                 1, 1, 0, 1, 0,  //
                                 1, 0, 1, 0, 1));
}

TEST(Extend, MasksChainsOnlyOnServersThatDraftTrees) {
  Problem p = sample_problem(Mode::target_verify, {{33, 3}, {7, 3}});
  EXPECT_FALSE(lowered(p).tree_mask.has_value());
  p.topk = 2;
  EXPECT_TRUE(lowered(p).tree_mask.has_value());
  expect_round_trip(p);
  p.mode = Mode::draft_extend_v2;
  EXPECT_FALSE(lowered(p).tree_mask.has_value());
}

TEST(Extend, SaysWhatItCannotExpress) {
  EXPECT_THAT(reason(sample_problem(Mode::decode, {{9, 1}})), HasSubstr("does not serve decode"));
  Problem p = tree_verify();
  p.requests[1].new_tokens = 4;
  p.requests[1].tree_parent.pop_back();
  EXPECT_THAT(reason(p), HasSubstr("one verify length for the whole batch, not both 5 and 4"));
  p = uneven_verify();
  p.topk = 2;
  EXPECT_THAT(reason(p), HasSubstr("one verify length"));
  p = sample_problem(Mode::target_verify, {{33, 3}});
  p.topk = 2;
  p.model.window = 8;
  EXPECT_THAT(reason(p), HasSubstr("no window together with a tree mask"));
  p = uneven_verify();
  p.model.head_dim = 40;
  EXPECT_THAT(reason(p), HasSubstr("multiples of 32, not 40"));
  p = uneven_verify();
  p.model.k_descale = 2;
  EXPECT_THAT(reason(p), HasSubstr("descale"));
  p = uneven_verify();
  p.model.kv_dtype = Dtype::fp8_e4m3fn;
  EXPECT_THAT(reason(p), HasSubstr("one dtype"));
  p = uneven_verify();
  p.pool.k.page = 5000;
  EXPECT_THAT(reason(p), HasSubstr("gap between its pages"));
}

TEST(Extend, LeavesRowsPastTheLastComputedBlockUntouched) {
  const Problem p = sample_problem(Mode::extend, {{10, 70}});
  ExtendCall call = lowered(p);
  call.max_len_extend = 33;
  const Attended got = read_back(call, p);
  EXPECT_EQ(got.rows[63].expect, RowExpectation::value);
  EXPECT_EQ(got.rows[64].expect, RowExpectation::untouched);
  call.max_len_extend = 32;
  EXPECT_EQ(read_back(call, p).rows[32].expect, RowExpectation::untouched);
  call.max_len_extend = 0;
  EXPECT_EQ(read_back(call, p).rows[0].expect, RowExpectation::untouched);
}

TEST(Extend, LosesTheNewestCommittedKeysWhenSeqLensLeavesOutTheDrafts) {
  const Problem p = sample_problem(Mode::target_verify, {{131, 3}});
  ExtendCall call = lowered(p);
  call.seq_lens.values[0] = 131;
  const Attended got = read_back(call, p);
  EXPECT_EQ(got.rows[2].keys, (std::vector<KeyRun>{{10, 0, 128}, {10, 131, 3}}));
}

TEST(Extend, TakesNewKeysByRowFromStartLoc) {
  const Problem p = sample_problem(Mode::target_verify, {{20, 2}, {5, 2}});
  ExtendCall call = lowered(p);
  call.extend_start_loc.values[1] = 0;
  const Attended got = read_back(call, p);
  EXPECT_EQ(got.rows[0].keys, (std::vector<KeyRun>{{10, 20, 1}, {11, 0, 5}}));
  EXPECT_EQ(got.rows[2].expect, RowExpectation::untouched);
}

TEST(Extend, CountsTheWindowFromTheQueryItself) {
  const Problem p = sample_problem(Mode::target_verify, {{20, 3}});
  ExtendCall call = lowered(p);
  call.sliding_window_size = 1;
  const Attended self = read_back(call, p);
  EXPECT_EQ(self.rows[2].keys, (std::vector<KeyRun>{{10, 22, 1}}));
  call.sliding_window_size = 4;
  const Attended four = read_back(call, p);
  EXPECT_EQ(four.rows[0].keys, (std::vector<KeyRun>{{10, 17, 4}}));
}

TEST(Extend, NeverVisitsMaskedKeysPastTheQueryBlock) {
  const Problem p = sample_problem(Mode::target_verify, {{5, 40}});
  ExtendCall call = lowered(p);
  call.tree_mask = int_array(Dtype::boolean, std::vector<std::int64_t>(40 * 40, 1));
  const Attended got = read_back(call, p);
  EXPECT_EQ(got.rows[0].keys, (std::vector<KeyRun>{{10, 0, 37}}));
  EXPECT_EQ(got.rows[32].keys, (std::vector<KeyRun>{{10, 0, 45}}));
}

TEST(Extend, ReadsTheTextAsEncoderWhenCrossAttentionHasNoLengths) {
  Problem p = sample_problem(Mode::extend, {{6, 2}});
  p.model.cross_attention = true;
  p.requests[0].encoder_tokens = 3;
  ExtendCall call = lowered(p);
  call.encoder_lens.reset();
  // Eight cells: the three encoder tokens and the first five of the text behind them.
  EXPECT_EQ(read_back(call, p).rows[0].keys, (std::vector<KeyRun>{{10, -3, 8}}));
}

TEST(Extend, ReadsGarbageWithoutHarm) {
  const Problem p = uneven_verify();
  const ExtendCall good = lowered(p);
  for (const std::int64_t bad : {top, -top, std::int64_t{-1}, std::int64_t{1} << 40}) {
    for (IntArray ExtendCall::* array :
         {&ExtendCall::seq_lens, &ExtendCall::extend_seq_lens, &ExtendCall::extend_start_loc,
          &ExtendCall::req_pool_indices, &ExtendCall::req_to_token}) {
      ExtendCall call = good;
      for (std::int64_t& value : (call.*array).values) value = bad;
      EXPECT_NE(difference(attended(p), read_back(call, p)), std::nullopt);
    }
    ExtendCall call = good;
    call.max_len_extend = bad;
    call.q_extend.shape[0] = bad;
    (void)read_back(call, p);
    call.sliding_window_size = bad;
    (void)read_back(call, p);
    call.tree_mask = int_array(Dtype::boolean, {1});
    (void)read_back(call, p);
    call.encoder_lens = int_array(Dtype::int64, {bad, bad, bad});
    call.is_cross_attn = true;
    (void)read_back(call, p);
  }
}

TEST(Extend, ReadsEmptyAndUnrecordedArraysAsNothingKnown) {
  const Problem p = uneven_verify();
  ExtendCall call = lowered(p);
  call.req_to_token.values.clear();
  call.req_to_token.recorded = false;
  EXPECT_EQ(read_back(call, p).rows[0].keys.front().sequence, unknown_sequence);
  EXPECT_THAT(read_back(ExtendCall{}, p).rows, testing::IsEmpty());
}

}  // namespace
}  // namespace attest
