#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "contracts/signatures.hpp"
#include "contracts/signatures/cpu_kernels.hpp"
#include "contracts/signatures/sample_problems.hpp"

namespace attest {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::int64_t top = std::numeric_limits<std::int64_t>::max();

DecodeCall lowered(const Problem& p) {
  EXPECT_EQ(problem_error(p), std::nullopt);
  Lowered<DecodeCall> call = lower_decode(p, make_slot_map(p));
  if (auto* refused = std::get_if<Unsupported>(&call)) ADD_FAILURE() << refused->reason;
  return std::holds_alternative<DecodeCall>(call) ? std::get<DecodeCall>(call) : DecodeCall{};
}

std::string reason(const Problem& p) {
  const Lowered<DecodeCall> call = lower_decode(p, make_slot_map(p));
  const auto* refused = std::get_if<Unsupported>(&call);
  return refused ? refused->reason : "supported";
}

Attended read_back(const DecodeCall& call, const Problem& p) {
  return read(call, p, make_slot_map(p));
}

void expect_round_trip(const Problem& p) {
  const Attended truth = attended(p);
  const Attended got = read_back(lowered(p), p);
  EXPECT_EQ(difference(truth, got), std::nullopt);
  EXPECT_TRUE(truth == got);
}

/// Two requests of 40 and 9 committed tokens, two branches each, step 1 of drafting.
Problem branches() {
  Problem p = sample_problem(Mode::draft_decode, {{41, 1}, {41, 1}, {10, 1}, {10, 1}});
  p.pool.page_size = 1;
  p.topk = 2;
  p.draft_step = 1;
  for (std::size_t i = 0; i < 4; ++i) {
    p.requests[i].shared_prefix = i < 2 ? 40 : 9;
    p.requests[i].shared_sequence = i < 2 ? 1 : 2;
  }
  fit_pool(p);
  return p;
}

TEST(Decode, ReadsBackEveryModeItServes) {
  expect_round_trip(sample_problem(Mode::decode, {{60, 1}, {0, 1}, {15, 1}, {16, 1}}));
  expect_round_trip(branches());
  Problem idle = sample_problem(Mode::idle, {{0, 1}});
  idle.requests[0].live = false;
  fit_pool(idle);
  expect_round_trip(idle);
}

TEST(Decode, ReadsBackWindowsSinksCapsAndMla) {
  Problem p = sample_problem(Mode::decode, {{60, 1}, {3, 1}});
  p.model.window = 16;
  p.model.softcap = 50;
  p.model.sinks = true;
  p.model.v_head_dim = 40;
  expect_round_trip(p);
  expect_round_trip(sample_mla_problem(Mode::decode, {{31, 1}, {200, 1}}));
}

TEST(Decode, ReadsBackEncoderAndCrossAttention) {
  Problem p = sample_problem(Mode::decode, {{60, 1}, {3, 1}});
  p.requests[0].encoder_tokens = 7;
  fit_pool(p);
  expect_round_trip(p);
  p.model.cross_attention = true;
  p.requests[1].encoder_tokens = 20;
  fit_pool(p);
  expect_round_trip(p);
  EXPECT_FALSE(lowered(p).key.has_value());
}

TEST(Decode, CountsTheStoredTokenAndPointsLocAtIt) {
  const Problem p = sample_problem(Mode::decode, {{60, 1}, {0, 1}});
  const SlotMap slots = make_slot_map(p);
  const DecodeCall call = lowered(p);
  EXPECT_THAT(call.seq_lens.values, ElementsAre(61, 1));
  EXPECT_THAT(call.loc.values, ElementsAre(slots.slot(0, 60), slots.slot(1, 0)));
  EXPECT_THAT(call.attn_logits.shape, ElementsAre(2, 4, 8, 33));
  EXPECT_EQ(call.attn_logits.dtype, Dtype::f32);
  EXPECT_EQ(call.loc.meta.dtype, Dtype::int64);
}

TEST(Decode, ExpandsTheTableByBranchWhileDrafting) {
  const Problem p = branches();
  const SlotMap slots = make_slot_map(p);
  const DecodeCall call = lowered(p);
  EXPECT_THAT(call.req_pool_indices.values, ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(call.req_to_token.size(0), 4);
  EXPECT_EQ(call.req_to_token.at(0, 39), call.req_to_token.at(1, 39)) << "shared";
  EXPECT_NE(call.req_to_token.at(0, 40), call.req_to_token.at(1, 40)) << "an earlier draft step";
  EXPECT_THAT(call.seq_lens.values, ElementsAre(42, 42, 11, 11));
  EXPECT_EQ(call.req_to_token.at(3, 10), call.loc[3]);
}

TEST(Decode, MakesMlaOneStorageTwice) {
  const DecodeCall call = lowered(sample_mla_problem(Mode::decode, {{31, 1}}));
  EXPECT_TRUE(takes_mla_path(call));
  EXPECT_EQ(call.k_buffer.storage, call.v_buffer.storage);
  EXPECT_THAT(call.k_buffer.shape, ElementsAre(call.v_buffer.size(0), 1, 576));
  EXPECT_EQ(call.v_buffer.size(2), 512);
  EXPECT_THAT(call.v_buffer.strides, ElementsAre(576, 576, 1));
}

TEST(Decode, SaysWhatItCannotExpress) {
  EXPECT_THAT(reason(sample_problem(Mode::target_verify, {{9, 3}})),
              HasSubstr("does not serve target_verify"));
  EXPECT_THAT(reason(sample_problem(Mode::decode, {{9, 1}, {9, 2}})), HasSubstr("request 1 has 2"));
  Problem p = sample_problem(Mode::decode, {{60, 1}});
  p.requests[0].encoder_tokens = 7;
  p.model.window = 9;
  fit_pool(p);
  EXPECT_THAT(reason(p), HasSubstr("no window with an encoder"));
  p = sample_mla_problem(Mode::decode, {{31, 1}});
  p.model.softcap = 30;
  EXPECT_THAT(reason(p), HasSubstr("MLA path takes no logit cap"));
  p.model.softcap = 0;
  p.model.window = 9;
  EXPECT_THAT(reason(p), HasSubstr("MLA path takes no window"));
}

TEST(Decode, ReadsWhatTheStoreLeftInThePool) {
  const Problem p = sample_problem(Mode::decode, {{3, 1}, {5, 1}});
  DecodeCall call = lowered(p);
  call.loc.values[0] = call.req_to_token.at(static_cast<std::size_t>(call.req_pool_indices[1]), 2);
  const Attended got = read_back(call, p);
  // Row 0's own key was never stored; it clobbered key 2 of row 1 instead.
  EXPECT_EQ(got.rows[0].keys.front().sequence, unknown_sequence);
  EXPECT_EQ(got.rows[0].keys.back(), (KeyRun{10, 0, 3}));
  EXPECT_EQ(got.rows[1].keys, (std::vector<KeyRun>{{10, 3, 1}, {11, 0, 2}, {11, 3, 3}}));
}

TEST(Decode, LosesTheStoredTokenWhenSeqLensLeavesItOut) {
  const Problem p = sample_problem(Mode::decode, {{60, 1}});
  DecodeCall call = lowered(p);
  call.seq_lens.values[0] = 60;
  EXPECT_EQ(read_back(call, p).rows[0].keys, (std::vector<KeyRun>{{10, 0, 60}}));
}

TEST(Decode, KeepsTheLastKeysOfAWindowAndDropsTheEncoderOffset) {
  Problem p = sample_problem(Mode::decode, {{10, 1}});
  p.requests[0].encoder_tokens = 4;
  fit_pool(p);
  DecodeCall call = lowered(p);
  call.sliding_window_size = 3;
  EXPECT_EQ(read_back(call, p).rows[0].keys, (std::vector<KeyRun>{{10, 4, 3}}));
  call.sliding_window_size = 11;
  EXPECT_EQ(read_back(call, p).rows[0].keys, (std::vector<KeyRun>{{10, 0, 11}}));
}

TEST(Decode, IgnoresWindowsOnTheMlaPath) {
  const Problem p = sample_mla_problem(Mode::decode, {{31, 1}});
  DecodeCall call = lowered(p);
  call.sliding_window_size = 3;
  EXPECT_EQ(read_back(call, p).rows[0].visible(), 32);
}

TEST(Decode, LeavesRowsPastTheBatchUntouched) {
  const Problem p = sample_problem(Mode::decode, {{60, 1}, {3, 1}});
  DecodeCall call = lowered(p);
  call.seq_lens.values.pop_back();
  EXPECT_EQ(read_back(call, p).rows[1].expect, RowExpectation::untouched);
}

TEST(Decode, ReadsGarbageWithoutHarm) {
  const Problem p = sample_problem(Mode::decode, {{60, 1}, {3, 1}});
  const DecodeCall good = lowered(p);
  for (const std::int64_t bad : {top, -top, std::int64_t{-1}, std::int64_t{1} << 40}) {
    for (IntArray DecodeCall::* array : {&DecodeCall::seq_lens, &DecodeCall::req_pool_indices,
                                         &DecodeCall::req_to_token, &DecodeCall::loc}) {
      DecodeCall call = good;
      for (std::int64_t& value : (call.*array).values) value = bad;
      EXPECT_NE(difference(attended(p), read_back(call, p)), std::nullopt);
    }
    DecodeCall call = good;
    call.query.shape[0] = bad;
    call.sliding_window_size = bad;
    (void)read_back(call, p);
    call.encoder_lens = int_array(Dtype::int64, {bad, bad});
    (void)read_back(call, p);
    call.is_cross_attn = true;
    (void)read_back(call, p);
  }
  EXPECT_THAT(read_back(DecodeCall{}, p).rows, testing::IsEmpty());
}

}  // namespace
}  // namespace attest
