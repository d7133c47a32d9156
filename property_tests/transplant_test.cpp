#include "property_tests/transplant.hpp"

#include <gtest/gtest.h>

#include "contracts/signatures.hpp"
#include "contracts/slot_map.hpp"

namespace attest {
namespace {

UnifiedCall verify(std::vector<Request> requests) {
  Problem p;
  p.model.num_q_heads = 4;
  p.model.num_kv_heads = 2;
  p.mode = Mode::target_verify;
  p.pool.num_pages = 64;
  p.context_len = 128;
  p.requests = std::move(requests);
  const auto lowered = lower_unified(p, make_slot_map(p));
  return std::get<UnifiedCall>(lowered);
}

const UnifiedCall large = verify({{.sequence = 0, .committed = 30, .new_tokens = 3},
                                  {.sequence = 1, .committed = 41, .new_tokens = 3},
                                  {.sequence = 2, .committed = 17, .new_tokens = 3}});
const UnifiedCall small = verify({{.sequence = 1, .committed = 5, .new_tokens = 1}});

UnifiedCall moved(const UnifiedCall& got, const UnifiedCall& onto, Transplant how) {
  const std::vector<std::string_view> fields = differing_fields(got, large);
  return std::get<UnifiedCall>(transplanted(got, large, onto, {fields.begin(), fields.end()}, how));
}

TEST(Transplant, OntoTheSameStepIsTheCallItself) {
  UnifiedCall got = large;
  got.seqused_k.values = {30, 41, 17};
  got.seqused_k.meta.dtype = Dtype::int32;
  got.max_seqlen_q = 9;
  got.softmax_scale = 0.5;
  got.q.strides[0] *= 2;
  got.block_table = int_matrix(Dtype::int32, 3, 1, {7, 8, 9});
  got.sinks = contiguous(Dtype::bf16, {4});
  EXPECT_EQ(moved(got, large, Transplant::from_the_front), got);
  EXPECT_EQ(moved(got, large, Transplant::from_the_back), got);
}

TEST(Transplant, CarriesWhatIsWrongAndNothingElse) {
  UnifiedCall got = large;
  for (std::int64_t& length : got.seqused_k.values) length -= 3;
  got.max_seqlen_q = 5;
  const UnifiedCall onto = moved(got, small, Transplant::from_the_front);
  EXPECT_EQ(onto.seqused_k.values, std::vector<std::int64_t>{small.seqused_k[0] - 3});
  EXPECT_EQ(onto.max_seqlen_q, small.max_seqlen_q + 2);
  EXPECT_EQ(onto.cu_seqlens_q, small.cu_seqlens_q);
  EXPECT_EQ(differing_fields(onto, small),
            (std::vector<std::string_view>{"seqused_k", "max_seqlen_q"}));
}

TEST(Transplant, FollowsTheEntryItIsAskedTo) {
  UnifiedCall got = large;
  got.seqused_k.values[2] += 7;
  EXPECT_EQ(moved(got, small, Transplant::from_the_front).seqused_k.values[0], small.seqused_k[0]);
  EXPECT_EQ(moved(got, small, Transplant::from_the_back).seqused_k.values[0],
            small.seqused_k[0] + 7);
  EXPECT_EQ(moved(got, small, Transplant::everywhere).seqused_k.values[0], small.seqused_k[0] + 7);
}

TEST(Transplant, KeepsHowFarASizeIsOff) {
  UnifiedCall got = large;
  got.seqused_k = int_array(Dtype::int64, {33, 44, 20, 1});
  got.q.shape[0] -= 2;
  const UnifiedCall onto = moved(got, small, Transplant::from_the_front);
  EXPECT_EQ(onto.seqused_k.values, (std::vector<std::int64_t>{small.seqused_k[0], 44}));
  EXPECT_EQ(onto.q.shape[0], 0) << "no size is negative";
}

TEST(Transplant, TakesWhatOnlyAHashWasKeptOfAsItIs) {
  UnifiedCall got = large;
  got.block_table.recorded = false;
  got.block_table.values.clear();
  EXPECT_EQ(moved(got, small, Transplant::from_the_front).block_table, got.block_table);
}

TEST(Transplant, KnowsWhereItLeavesTheDomainOfTheCall) {
  UnifiedCall got = large;
  for (std::int64_t& length : got.seqused_k.values) length -= 7;
  const auto keeps = [&](const UnifiedCall& onto) {
    return keeps_signs(got, moved(got, onto, Transplant::from_the_front), onto);
  };
  EXPECT_TRUE(keeps(large));
  EXPECT_FALSE(keeps(small)) << "-1 of 6 keys";
  EXPECT_FALSE(keeps(verify({{.sequence = 1, .committed = 6, .new_tokens = 1}}))) << "0 of 7";
  EXPECT_TRUE(keeps(verify({{.sequence = 1, .committed = 7, .new_tokens = 1}}))) << "1 of 8";
  // A call that says -1 itself may go on to.
  got.seqused_k.values[2] = -1;
  EXPECT_TRUE(keeps(small));
  // A right entry that is 0 is none of the fault's.
  got = large;
  got.block_table.values[0] += 1;
  UnifiedCall onto = large;
  onto.block_table.values[1] = 0;
  EXPECT_TRUE(keeps(onto));
  got = large;
  got.max_seqlen_q -= 2;
  EXPECT_FALSE(keeps(small));
}

TEST(Transplant, LeavesCallsOfAnotherSignatureAlone) {
  EXPECT_EQ(transplanted(large, large, Call(DecodeCall{}), {}, Transplant::everywhere),
            Call(DecodeCall{}));
}

}  // namespace
}  // namespace attest
