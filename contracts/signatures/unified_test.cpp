#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "contracts/signatures.hpp"
#include "contracts/signatures/sample_problems.hpp"

namespace attest {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::int64_t top = std::numeric_limits<std::int64_t>::max();

UnifiedCall lowered(const Problem& p) {
  EXPECT_EQ(problem_error(p), std::nullopt);
  Lowered<UnifiedCall> call = lower_unified(p, make_slot_map(p));
  if (auto* refused = std::get_if<Unsupported>(&call)) ADD_FAILURE() << refused->reason;
  return std::holds_alternative<UnifiedCall>(call) ? std::get<UnifiedCall>(call) : UnifiedCall{};
}

std::string reason(const Problem& p) {
  const Lowered<UnifiedCall> call = lower_unified(p, make_slot_map(p));
  const auto* refused = std::get_if<Unsupported>(&call);
  return refused ? refused->reason : "supported";
}

Attended read_back(const UnifiedCall& call, const Problem& p) {
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

TEST(Unified, ReadsBackEveryModeItServes) {
  expect_round_trip(sample_problem(Mode::decode, {{60, 1}, {0, 1}, {15, 1}, {16, 1}}));
  expect_round_trip(sample_problem(Mode::draft_decode, {{141, 1}, {34, 1}}));
  expect_round_trip(sample_problem(Mode::extend, {{0, 50}, {33, 20}, {64, 1}}));
  expect_round_trip(sample_problem(Mode::mixed, {{64, 1}, {0, 70}, {127, 1}}));
  expect_round_trip(uneven_verify());
  expect_round_trip(sample_problem(Mode::draft_extend_v2, {{15, 5}, {100, 2}}));
}

TEST(Unified, ReadsBackPaddedRows) {
  Problem p = sample_problem(Mode::target_verify, {{33, 3}, {0, 3}, {0, 3}});
  p.requests[1].live = p.requests[2].live = false;
  p.path = Path::replay;
  expect_round_trip(p);
  Problem idle = sample_problem(Mode::idle, {{0, 1}});
  idle.requests[0].live = false;
  expect_round_trip(idle);
}

TEST(Unified, ReadsBackSharedPrefixesAndStrides) {
  Problem p = uneven_verify();
  for (Request& r : p.requests) {
    r.shared_prefix = 15;
    r.shared_sequence = 3;
  }
  p.pool.k = {.page = 3200, .slot = 200, .head = 40};
  p.pool.v = {.page = 5000, .slot = 200, .head = 100};
  expect_round_trip(p);
}

TEST(Unified, ReadsBackEvictedPagesOfAWindowedLayer) {
  Problem p = sample_problem(Mode::decode, {{60, 1}});
  p.model.window = 20;  // sees 41 .. 60
  p.pool.slots = {{{-1, 32}, {48, 16}, {0, 13}}};
  expect_round_trip(p);
}

TEST(Unified, ReadsBackAnIdleRequestInALongerBatch) {
  expect_round_trip(sample_problem(Mode::mixed, {{40, 2}, {30, 0}, {20, 1}}));
}

TEST(Unified, CountsThisStepsTokensInInt64) {
  const UnifiedCall call = lowered(uneven_verify());
  EXPECT_THAT(call.seqused_k.values, ElementsAre(134, 45, 16));
  EXPECT_EQ(call.seqused_k.meta.dtype, Dtype::int64);
  EXPECT_THAT(call.cu_seqlens_q.values, ElementsAre(0, 3, 8, 9));
  EXPECT_EQ(call.cu_seqlens_q.meta.dtype, Dtype::int32);
  EXPECT_EQ(call.max_seqlen_q, 5);
  EXPECT_EQ(call.max_seqlen_k, 144);
  EXPECT_THAT(call.q.shape, ElementsAre(9, 4, 32));
  EXPECT_THAT(call.out.shape, ElementsAre(9, 4, 32));
}

TEST(Unified, TableHoldsTheRequestsPagesAndValidIdsAfterThem) {
  const Problem p = uneven_verify();
  const SlotMap slots = make_slot_map(p);
  const UnifiedCall call = lowered(p);
  EXPECT_EQ(call.block_table.meta.dtype, Dtype::int32);
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t c = 0; c < static_cast<std::size_t>(call.block_table.size(1)); ++c) {
      const auto& pages = slots.pages[i];
      EXPECT_EQ(call.block_table.at(i, c), c < pages.size() ? pages[c] : pages.back());
    }
  }
}

TEST(Unified, TableHasRoomForTheDraftsUpToATile) {
  Problem p = sample_problem(Mode::target_verify, {{126, 4}});
  p.context_len = 128;
  EXPECT_EQ(lowered(p).block_table.size(1), 192 / 16);
  p.num_draft_tokens = 70;
  EXPECT_EQ(lowered(p).block_table.size(1), 256 / 16);
  p.path = Path::capture;
  EXPECT_EQ(lowered(p).max_seqlen_k, 256);
}

TEST(Unified, PassesTheWindowAsTheLargestDistance) {
  Problem p = uneven_verify();
  EXPECT_THAT(lowered(p).window_size, ElementsAre(-1, -1));
  p.model.window = 128;
  EXPECT_THAT(lowered(p).window_size, ElementsAre(127, 0));
  expect_round_trip(p);
  p.model.window = 1;
  EXPECT_THAT(lowered(p).window_size, ElementsAre(0, 0));
  expect_round_trip(p);
}

TEST(Unified, PassesFeaturesAndDtypes) {
  Problem p = uneven_verify();
  p.model.sinks = true;
  p.model.softcap = 30;
  p.model.v_head_dim = 64;
  p.model.kv_dtype = Dtype::fp8_e4m3fn;
  p.model.k_descale = 0.5;
  p.model.v_descale = 2;
  const UnifiedCall call = lowered(p);
  EXPECT_EQ(call.sinks, contiguous(Dtype::bf16, {4}));
  EXPECT_EQ(call.softcap, 30);
  EXPECT_EQ(call.v.shape[3], 64);
  EXPECT_EQ(call.out.shape[2], 64);
  EXPECT_EQ(call.k.dtype, Dtype::fp8_e4m3fn);
  EXPECT_TRUE(call.k_descale && call.v_descale && !call.q_descale);
  expect_round_trip(p);
}

TEST(Unified, RefusesWhatItHasNoArgumentFor) {
  Problem tree = sample_problem(Mode::target_verify, {{20, 3}});
  tree.requests[0].tree_parent = {-1, 0, 0};
  EXPECT_THAT(reason(tree), HasSubstr("no tree mask, the drafts of request 0"));
  tree.requests[0].tree_parent = {-1, 0, 1};
  EXPECT_EQ(reason(tree), "supported");

  Problem encoder = sample_problem(Mode::decode, {{20, 1}});
  encoder.requests[0].encoder_tokens = 7;
  encoder.pool.num_pages += 1;
  EXPECT_THAT(reason(encoder), HasSubstr("encoder tokens, request 0 has 7"));
  encoder.model.cross_attention = true;
  EXPECT_THAT(reason(encoder), HasSubstr("cross attention"));

  EXPECT_THAT(reason(sample_mla_problem(Mode::decode, {{20, 1}})), HasSubstr("MLA"));
  EXPECT_THAT(reason(sample_problem(Mode::decode, {{20, 1}, {20, 0}})), HasSubstr("row i"));
  EXPECT_THAT(reason(sample_problem(Mode::decode, {{20, 0}})), HasSubstr("no request has"));

  Problem narrow = sample_problem(Mode::decode, {{20, 1}});
  narrow.model.q_dtype = Dtype::fp8_e4m3fn;
  EXPECT_THAT(reason(narrow), HasSubstr("cut bf16 keys down"));

  Problem one_descale = sample_problem(Mode::decode, {{20, 1}});
  one_descale.model.k_descale = 0.5;
  EXPECT_THAT(reason(one_descale), HasSubstr("only together"));

  Problem scattered = sample_problem(Mode::decode, {{20, 1}});
  scattered.pool.slots = {{{0, 10}, {30, 11}}};
  EXPECT_THAT(reason(scattered), HasSubstr("pages of 16"));

  Problem evicted = sample_problem(Mode::decode, {{60, 1}});
  evicted.pool.slots = {{{-1, 32}, {48, 16}, {0, 13}}};
  EXPECT_THAT(reason(evicted), HasSubstr("token 0 of request 0 is evicted"));
}

TEST(Unified, ShortLengthHidesTheNewestKeys) {
  const Problem p = uneven_verify();
  UnifiedCall call = lowered(p);
  call.seqused_k.values[0] = 131;  // three short: row 0 now stands at 128
  const Attended got = read_back(call, p);
  EXPECT_THAT(got.rows[0].keys, ElementsAre(KeyRun{10, 0, 129}));
  EXPECT_THAT(got.rows[2].keys, ElementsAre(KeyRun{10, 0, 131}));
  EXPECT_THAT(difference(attended(p), got).value_or("equal"),
              HasSubstr("row 0 (request 0, token 0)"));
}

TEST(Unified, LongLengthReadsSlotsThatHoldNothing) {
  const Problem p = uneven_verify();
  UnifiedCall call = lowered(p);
  call.seqused_k.values[0] = 136;
  const std::int64_t last_page = call.block_table.at(0, 8);
  EXPECT_THAT(read_back(call, p).rows[2].keys,
              ElementsAre(KeyRun{unknown_sequence, last_page * 16 + 6, 2}, KeyRun{10, 0, 134}));
}

TEST(Unified, MaxSeqlenQOfOneMapsRowsToRequests) {
  const Problem p = uneven_verify();
  UnifiedCall call = lowered(p);
  call.max_seqlen_q = 1;
  const Attended got = read_back(call, p);
  EXPECT_THAT(got.rows[1].keys, ElementsAre(KeyRun{11, 0, 45}));
  EXPECT_EQ(got.rows[3].expect, RowExpectation::untouched);
}

TEST(Unified, RowsNoOffsetCoversStayUntouched) {
  const Problem p = uneven_verify();
  UnifiedCall call = lowered(p);
  call.cu_seqlens_q.values = {0, 3, 6, 7};
  const Attended got = read_back(call, p);
  EXPECT_EQ(got.rows[7].expect, RowExpectation::untouched);
  EXPECT_EQ(got.rows[8].expect, RowExpectation::untouched);
  EXPECT_THAT(got.rows[6].keys, ElementsAre(KeyRun{12, 0, 16}));
}

TEST(Unified, RowsBeforeTheFirstKeySeeNothing) {
  const Problem p = uneven_verify();
  UnifiedCall call = lowered(p);
  call.seqused_k.values[0] = 1;
  const Attended got = read_back(call, p);
  EXPECT_EQ(got.rows[0].expect, RowExpectation::zero);
  EXPECT_EQ(got.rows[1].expect, RowExpectation::zero);
  EXPECT_THAT(got.rows[2].keys, ElementsAre(KeyRun{10, 0, 1}));
}

TEST(Unified, AnotherRequestsPageShowsThatRequestsKeys) {
  const Problem p = uneven_verify();
  UnifiedCall call = lowered(p);
  call.block_table.values[0] = call.block_table.at(1, 1);
  EXPECT_THAT(read_back(call, p).rows[0].keys,
              ElementsAre(KeyRun{10, 16, 116}, KeyRun{11, 16, 16}));
}

TEST(Unified, ColumnsPastTheRowComeFromTheNextRow) {
  Problem p = sample_problem(Mode::target_verify, {{60, 6}, {20, 2}});
  UnifiedCall call = lowered(p);
  const std::size_t width = 4;  // one page too narrow for the first request
  std::vector<std::int64_t> cells;
  for (std::size_t i = 0; i < 2; ++i) {
    for (std::size_t c = 0; c < width; ++c) cells.push_back(call.block_table.at(i, c));
  }
  call.block_table = int_matrix(Dtype::int32, 2, 4, cells);
  EXPECT_THAT(read_back(call, p).rows[5].keys, ElementsAre(KeyRun{10, 0, 64}, KeyRun{11, 0, 2}));
  // A row of a wider table: what lies behind it is not part of the argument.
  call.block_table.meta.strides[0] = 8;
  EXPECT_THAT(read_back(call, p).rows[5].keys,
              ElementsAre(KeyRun{unknown_sequence, -1, 2}, KeyRun{10, 0, 64}));
}

TEST(Unified, ExpandedHeadsReadAsOne) {
  Problem p = uneven_verify();
  p.model.num_kv_heads = 1;
  UnifiedCall call = lowered(p);
  for (TensorMeta* pool : {&call.k, &call.v}) {
    pool->shape[2] = 4;
    pool->strides[2] = 0;
  }
  EXPECT_EQ(difference(attended(p), read_back(call, p)), std::nullopt);
}

TEST(Unified, AViewWithOtherStridesReadsNoKnownKey) {
  const Problem p = uneven_verify();
  UnifiedCall call = lowered(p);
  call.v.strides[1] *= 2;
  EXPECT_THAT(read_back(call, p).rows[0].keys, ElementsAre(KeyRun{unknown_sequence, -1, 132}));
}

TEST(Unified, ReadingNonsenseEnds) {
  const Problem p = uneven_verify();
  for (const std::int64_t nonsense : {top, std::int64_t{1} << 62, std::int64_t{-1}, -top}) {
    UnifiedCall call = lowered(p);
    call.seqused_k.values.assign(3, nonsense);
    EXPECT_EQ(read_back(call, p).rows.size(), 9U);
    call.block_table.values.assign(call.block_table.values.size(), nonsense);
    call.k.shape[0] = call.v.shape[0] = top;
    call.k.shape[1] = nonsense;
    EXPECT_EQ(read_back(call, p).rows.size(), 9U);
    call.cu_seqlens_q.values = {nonsense, 0, nonsense, 1};
    call.window_size = {nonsense, nonsense};
    call.block_table.meta.shape = {nonsense, nonsense};
    call.q.shape[0] = top;
    EXPECT_GE(read_back(call, p).rows.size(), 9U);
  }
  EXPECT_TRUE(read_back(UnifiedCall{}, p).rows.empty());
}

}  // namespace
}  // namespace attest
