#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "contracts/rules.hpp"
#include "contracts/signatures.hpp"
#include "contracts/signatures/sample_problems.hpp"

namespace attest {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::int64_t top = std::numeric_limits<std::int64_t>::max();

BatchPrefillCall lowered(const Problem& p) {
  EXPECT_EQ(problem_error(p), std::nullopt);
  Lowered<BatchPrefillCall> call = lower_batch_prefill(p, make_slot_map(p));
  if (auto* refused = std::get_if<Unsupported>(&call)) ADD_FAILURE() << refused->reason;
  return std::holds_alternative<BatchPrefillCall>(call) ? std::get<BatchPrefillCall>(call)
                                                        : BatchPrefillCall{};
}

std::string reason(const Problem& p) {
  const Lowered<BatchPrefillCall> call = lower_batch_prefill(p, make_slot_map(p));
  const auto* refused = std::get_if<Unsupported>(&call);
  return refused ? refused->reason : "supported";
}

Attended read_back(const BatchPrefillCall& call, const Problem& p) {
  return read(call, p, make_slot_map(p));
}

bool rejected(const BatchPrefillCall& call, const Problem& p) {
  const SlotMap slots = make_slot_map(p);
  return check(call, {p, slots}).rejects();
}

Problem prompt() { return sample_problem(Mode::extend, {{31, 40}, {0, 4}, {60, 1}}); }

TEST(BatchPrefill, PassesTheFlatPoolAndEntriesForATilePastTheEnd) {
  const Problem p = prompt();
  const SlotMap slots = make_slot_map(p);
  const BatchPrefillCall call = lowered(p);
  EXPECT_THAT(call.k.shape, ElementsAre(p.pool.num_pages * 16, 2, 32));
  EXPECT_THAT(call.k.strides, ElementsAre(64, 32, 1));
  EXPECT_THAT(call.cu_seqlens_q.values, ElementsAre(0, 40, 44, 45));
  EXPECT_THAT(call.kv_indptr.values, ElementsAre(0, 71, 75, 136));
  ASSERT_EQ(call.kv_page_indices.values.size(), 136U + 128U);
  EXPECT_EQ(call.kv_page_indices.values[71 + 3], slots.slot(1, 3));
  EXPECT_EQ(call.kv_page_indices.values[200], slots.slot(0, 0));
  EXPECT_EQ(call.max_seqlen_q, 40);
  EXPECT_EQ(call.max_seqlen_k, 71);
}

TEST(BatchPrefill, RefusesWhatItHasNoArgumentFor) {
  EXPECT_THAT(reason(sample_mla_problem(Mode::decode, {{9, 1}})), HasSubstr("separate K and V"));
  Problem p = prompt();
  p.model.kv_dtype = Dtype::fp8_e4m3fn;
  EXPECT_THAT(reason(p), HasSubstr("one type for q, k and v"));
  p.model.q_dtype = Dtype::fp8_e4m3fn;
  p.model.k_descale = 1;
  EXPECT_THAT(reason(p), HasSubstr("together or not at all"));
  p.model.q_descale = p.model.v_descale = 1;
  EXPECT_EQ(reason(p), "supported");
  p.model.out_dtype = Dtype::f16;
  EXPECT_THAT(reason(p), HasSubstr("returns bf16"));
  p = prompt();
  p.model.head_dim = 288;
  EXPECT_THAT(reason(p), HasSubstr("up to 256"));
  p = prompt();
  p.pool.k = {.page = 2048, .slot = 64, .head = 32};
  EXPECT_THAT(reason(p), HasSubstr("gaps between its pages"));
  p = sample_problem(Mode::target_verify, {{9, 3}});
  p.requests[0].tree_parent = {-1, 0, 0};
  EXPECT_THAT(reason(p), HasSubstr("not a chain"));
}

TEST(BatchPrefill, ReadsBackEvictedKeysThatNoRowSees) {
  Problem p = sample_problem(Mode::draft_extend_v2, {{60, 4}});
  p.model.window = 16;
  p.pool.slots = {{{-1, 32}, {48, 32}}};
  EXPECT_EQ(difference(attended(p), read_back(lowered(p), p)), std::nullopt);
  EXPECT_FALSE(rejected(lowered(p), p));
}

TEST(BatchPrefill, LosesTheWindowThatMaxSeqlenKDoesNotReach) {
  Problem p = sample_problem(Mode::draft_extend_v2, {{60, 4}});
  p.model.window = 16;
  BatchPrefillCall call = lowered(p);
  call.max_seqlen_k = 4;  // frozen at capture
  EXPECT_THAT(read_back(call, p).rows[0].keys, ElementsAre(KeyRun{10, 0, 61}));
  EXPECT_TRUE(rejected(call, p));
  call.max_seqlen_k = 16;  // the window is 15 wide
  EXPECT_EQ(difference(attended(p), read_back(call, p)), std::nullopt);
  EXPECT_FALSE(rejected(call, p));
}

TEST(BatchPrefill, TakesAShortMaxSeqlenKForAdviceWithoutAWindow) {
  const Problem p = sample_problem(Mode::draft_extend_v2, {{60, 4}});
  BatchPrefillCall call = lowered(p);
  call.max_seqlen_k = 4;
  EXPECT_EQ(difference(attended(p), read_back(call, p)), std::nullopt);
  EXPECT_FALSE(rejected(call, p));
  call.max_seqlen_k = 0;  // the kernel is not launched
  EXPECT_EQ(read_back(call, p).rows[0].expect, RowExpectation::untouched);
  EXPECT_TRUE(rejected(call, p));
}

TEST(BatchPrefill, DropsTheMaskForOneRow) {
  const Problem p = sample_problem(Mode::draft_extend_v2, {{60, 4}});
  BatchPrefillCall call = lowered(p);
  call.max_seqlen_q = 1;
  EXPECT_THAT(read_back(call, p).rows[0].keys, ElementsAre(KeyRun{10, 0, 64}));
  EXPECT_EQ(read_back(call, p).rows[1].expect, RowExpectation::untouched);
}

TEST(BatchPrefill, NeedsFiniteSlotsBehindTheLastKey) {
  const Problem p = prompt();
  BatchPrefillCall call = lowered(p);
  call.kv_page_indices.values[136 + 127] = -1;
  EXPECT_TRUE(rejected(call, p));
  call.kv_page_indices.values[136 + 127] = 0;
  EXPECT_FALSE(rejected(call, p));
}

TEST(BatchPrefill, ReadingNonsenseEnds) {
  const Problem p = prompt();
  for (const std::int64_t nonsense : {top, std::int64_t{1} << 62, std::int64_t{-1}, -top}) {
    BatchPrefillCall call = lowered(p);
    call.kv_indptr.values = {0, nonsense, -nonsense, nonsense};
    EXPECT_EQ(read_back(call, p).rows.size(), 45U);
    call.kv_page_indices.values.assign(108, nonsense);
    call.k.shape[0] = call.v.shape[0] = top;
    call.max_seqlen_q = call.max_seqlen_k = nonsense;
    call.cu_seqlens_q.values.back() = nonsense;
    call.window_size = {nonsense, nonsense};
    EXPECT_EQ(read_back(call, p).rows.size(), 45U);
  }
  EXPECT_TRUE(read_back(BatchPrefillCall{}, p).rows.empty());
}

}  // namespace
}  // namespace attest
