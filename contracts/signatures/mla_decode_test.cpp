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

MlaDecodeCall lowered(const Problem& p) {
  EXPECT_EQ(problem_error(p), std::nullopt);
  Lowered<MlaDecodeCall> call = lower_mla_decode(p, make_slot_map(p));
  if (auto* refused = std::get_if<Unsupported>(&call)) ADD_FAILURE() << refused->reason;
  return std::holds_alternative<MlaDecodeCall>(call) ? std::get<MlaDecodeCall>(call)
                                                     : MlaDecodeCall{};
}

std::string reason(const Problem& p) {
  const Lowered<MlaDecodeCall> call = lower_mla_decode(p, make_slot_map(p));
  const auto* refused = std::get_if<Unsupported>(&call);
  return refused ? refused->reason : "supported";
}

Attended read_back(const MlaDecodeCall& call, const Problem& p) {
  return read(call, p, make_slot_map(p));
}

void expect_round_trip(const Problem& p) {
  const Attended truth = attended(p);
  const Attended got = read_back(lowered(p), p);
  EXPECT_EQ(difference(truth, got), std::nullopt);
  EXPECT_TRUE(truth == got);
}

Problem verify() { return sample_mla_problem(Mode::target_verify, {{31, 4}, {5, 4}, {60, 4}}); }

TEST(MlaDecode, ReadsBackEveryModeItServes) {
  expect_round_trip(sample_mla_problem(Mode::decode, {{5, 1}, {100, 1}, {33, 1}}));
  expect_round_trip(sample_mla_problem(Mode::draft_decode, {{10, 1}, {100, 1}}));
  expect_round_trip(sample_mla_problem(Mode::draft_extend_v2, {{3, 3}, {28, 3}}));
  expect_round_trip(verify());
}

TEST(MlaDecode, ReadsBackPaddedRowsAndBrokenPages) {
  Problem padded = verify();
  padded.requests[1].live = false;
  expect_round_trip(padded);
  Problem scattered = sample_mla_problem(Mode::decode, {{20, 1}});
  scattered.pool.slots = {{{0, 10}, {30, 11}}};
  expect_round_trip(scattered);
}

TEST(MlaDecode, PassesTheFlatPool) {
  const Problem p = verify();
  const SlotMap slots = make_slot_map(p);
  const MlaDecodeCall call = lowered(p);
  EXPECT_THAT(call.kv_buffer.shape, ElementsAre(p.pool.num_pages * 16, 1, 1, 576));
  EXPECT_THAT(call.kv_buffer.strides, ElementsAre(576, 576, 576, 1));
  EXPECT_THAT(call.qo_indptr.values, ElementsAre(0, 4, 8, 12));
  EXPECT_THAT(call.kv_indptr.values, ElementsAre(0, 35, 44, 108));
  EXPECT_THAT(call.kv_last_page_lens.values, ElementsAre(1, 1, 1));
  EXPECT_EQ(call.kv_indices.values[35 + 8], slots.slot(1, 8));
  EXPECT_EQ(call.max_seqlen_q, 4);
  EXPECT_EQ(call.page_size, 1);
  for (const IntArray* array : {&call.qo_indptr, &call.kv_indptr, &call.kv_indices}) {
    EXPECT_EQ(array->meta.dtype, Dtype::int32);
  }
  EXPECT_THAT(call.o.shape, ElementsAre(12, 16, 512));
}

TEST(MlaDecode, RefusesWhatItHasNoArgumentFor) {
  EXPECT_THAT(reason(sample_mla_problem(Mode::target_verify, {{9, 3}, {9, 5}})),
              HasSubstr("request 0 has 3 new tokens, request 1 has 5"));
  EXPECT_THAT(reason(sample_mla_problem(Mode::extend, {{0, 9}})), HasSubstr("prefill"));
  EXPECT_THAT(reason(sample_problem(Mode::decode, {{9, 1}})), HasSubstr("separate K and V"));
  EXPECT_THAT(reason(sample_mla_problem(Mode::decode, {{9, 0}})), HasSubstr("no request has"));

  Problem other_length = verify();
  other_length.num_draft_tokens = 5;
  EXPECT_THAT(reason(other_length), HasSubstr("num_draft_tokens = 5, the requests have 4"));

  Problem tree = verify();
  tree.requests[2].tree_parent = {-1, 0, 0, 1};
  EXPECT_THAT(reason(tree), HasSubstr("request 2 are not a chain"));

  Problem p = verify();
  p.model.window = 8;
  EXPECT_THAT(reason(p), HasSubstr("window"));
  p = verify();
  p.model.sinks = true;
  EXPECT_THAT(reason(p), HasSubstr("sinks"));
  p = verify();
  p.model.softcap = 8;
  EXPECT_THAT(reason(p), HasSubstr("softcap"));
  p = verify();
  p.model.q_dtype = p.model.kv_dtype = Dtype::fp8_e4m3fn;
  EXPECT_THAT(reason(p), HasSubstr("q_scale and kv_scale"));
  p.model.q_descale = p.model.k_descale = 1;
  EXPECT_THAT(reason(p), HasSubstr("one kv_scale"));
  p.model.v_descale = 1;
  EXPECT_EQ(reason(p), "supported");
  p = verify();
  p.pool.k = {.page = 11520, .slot = 576, .head = 576};
  EXPECT_THAT(reason(p), HasSubstr("gaps between its pages"));
}

TEST(MlaDecode, ShortLengthHidesTheNewestKeys) {
  const Problem p = verify();
  MlaDecodeCall call = lowered(p);
  call.kv_indptr.values = {0, 31, 40, 104};
  const Attended got = read_back(call, p);
  EXPECT_THAT(got.rows[0].keys, ElementsAre(KeyRun{10, 0, 28}));
  EXPECT_THAT(got.rows[3].keys, ElementsAre(KeyRun{10, 0, 31}));
}

TEST(MlaDecode, AddressesRowsByTheOneLength) {
  const Problem p = verify();
  MlaDecodeCall call = lowered(p);
  call.qo_indptr.values = {0, 3, 6, 9};
  call.max_seqlen_q = 3;
  const Attended got = read_back(call, p);
  EXPECT_EQ(got.rows[3].keys, (std::vector<KeyRun>{{11, 0, 7}}));
  EXPECT_EQ(got.rows[9].expect, RowExpectation::untouched);
}

TEST(MlaDecode, ReadsWholePages) {
  const Problem p = sample_mla_problem(Mode::decode, {{20, 1}});
  const SlotMap slots = make_slot_map(p);
  MlaDecodeCall call = lowered(p);
  call.page_size = 16;
  call.kv_buffer = contiguous(Dtype::bf16, {p.pool.num_pages, 16, 1, 576});
  call.kv_indices = int_array(Dtype::int32, slots.pages[0]);
  call.kv_indptr.values = {0, 2};
  call.kv_last_page_lens.values = {5};
  EXPECT_EQ(difference(attended(p), read_back(call, p)), std::nullopt);
  call.page_size = 1;  // the indices are pages now, so these are not the request's slots
  EXPECT_NE(difference(attended(p), read_back(call, p)), std::nullopt);
}

TEST(MlaDecode, ReadingNonsenseEnds) {
  const Problem p = verify();
  for (const std::int64_t nonsense : {top, std::int64_t{1} << 62, std::int64_t{-1}, -top}) {
    MlaDecodeCall call = lowered(p);
    call.kv_indptr.values = {0, nonsense, -nonsense, nonsense};
    EXPECT_EQ(read_back(call, p).rows.size(), 12U);
    call.kv_indices.values.assign(108, nonsense);
    call.kv_buffer.shape[0] = top;
    call.page_size = call.kv_buffer.shape[1] = nonsense;
    call.kv_last_page_lens.values = {nonsense};
    EXPECT_EQ(read_back(call, p).rows.size(), 12U);
    call.max_seqlen_q = nonsense;
    call.qo_indptr.values.back() = nonsense;
    EXPECT_EQ(read_back(call, p).rows.size(), 12U);
  }
  EXPECT_TRUE(read_back(MlaDecodeCall{}, p).rows.empty());
}

}  // namespace
}  // namespace attest
