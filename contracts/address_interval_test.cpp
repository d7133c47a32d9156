#include "contracts/address_interval.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

namespace attest {
namespace {

using testing::HasSubstr;

/// One request of 40 keys in pages 5, 9 and 2 of 16 slots, 2 heads of 64; 4 new tokens of 8 heads.
UnifiedCall paged_call(Dtype kv = Dtype::bf16) {
  UnifiedCall c;
  c.q = c.out = contiguous(Dtype::bf16, {4, 8, 64});
  c.k = c.v = contiguous(kv, {100, 16, 2, 64});
  c.cu_seqlens_q = int_array(Dtype::int32, {0, 4});
  c.seqused_k = int_array(Dtype::int32, {40});
  c.block_table = int_matrix(Dtype::int32, 1, 5, {5, 9, 2, 77, 77});
  c.max_seqlen_q = 4;
  return c;
}

AddressInterval of(const Call& call, const std::string& operand) {
  for (const AddressInterval& interval : address_intervals(call)) {
    if (interval.operand == operand) return interval;
  }
  ADD_FAILURE() << operand << " is not touched";
  return {};
}

TEST(AddressIntervals, SpanThePagesOfTheTableThatHoldVisibleKeys) {
  const Call call = paged_call();
  const AddressInterval k = of(call, "k");
  EXPECT_EQ(k.first, 2 * 16 * 128);       // page 2, slot 0
  EXPECT_EQ(k.end, (9 * 16 + 16) * 128);  // page 9 to its last slot
  EXPECT_EQ(k.end_byte(), 2 * k.end);
  EXPECT_EQ(of(call, "block table").end, 3) << "cells past the length are not read";
  EXPECT_EQ(of(call, "out").end, 4 * 8 * 64);
}

TEST(AddressIntervals, EndInsideTheLastPage) {
  UnifiedCall c = paged_call();
  c.block_table.values = {2, 5, 9, 77, 77};
  EXPECT_EQ(of(c, "k").end, (9 * 16 + 8) * 128);
}

TEST(AddressIntervals, LeaveOutWhatTheWindowHides) {
  UnifiedCall c = paged_call();
  c.window_size = {3, 0};  // rows at 36 to 39 see keys from 33 on: page 2 alone
  EXPECT_EQ(of(c, "k").first, (2 * 16 + 1) * 128);
  EXPECT_EQ(of(c, "k").end, (2 * 16 + 8) * 128);
  EXPECT_EQ(of(c, "block table").first, 2);
}

TEST(AddressIntervals, FollowStridesAndElementSize) {
  UnifiedCall c = paged_call(Dtype::fp8_e4m3fn);
  c.k.strides = {1 << 28, 256, 64, 1};
  EXPECT_EQ(of(c, "k").end, (std::int64_t{9} << 28) + 15 * 256 + 128);
  EXPECT_EQ(of(c, "k").end_byte(), of(c, "k").end);
  EXPECT_EQ(of(c, "v").end, (9 * 16 + 16) * 128);
  c.out.strides = {std::int64_t{1} << 30, 64, 1};
  EXPECT_EQ(of(c, "out").end, (std::int64_t{3} << 30) + 8 * 64);
}

TEST(AddressIntervals, CountTheSplitWorkspaceInFloats) {
  UnifiedCall c = paged_call();
  c.launch = Launch{.form = "3d", .kv_splits = 16, .queries_per_kv = 4};
  EXPECT_EQ(of(c, "split workspace").end_byte(), 4 * 8 * 16 * 64 * 4);
}

TEST(AddressIntervals, OfExtendCoverThePrefixAlone) {
  ExtendCall c;
  c.q_extend = c.o_extend = contiguous(Dtype::bf16, {3, 4, 32});
  c.k_extend = c.v_extend = contiguous(Dtype::bf16, {3, 2, 32});
  c.k_buffer = c.v_buffer = contiguous(Dtype::bf16, {1000, 2, 32});
  c.req_to_token = int_matrix(Dtype::int32, 2, 4, {0, 0, 0, 0, 700, 20, 999, 3});
  c.req_pool_indices = int_array(Dtype::int64, {1});
  c.seq_lens = int_array(Dtype::int64, {5});
  c.extend_seq_lens = int_array(Dtype::int64, {3});
  c.extend_start_loc = int_array(Dtype::int64, {0});
  EXPECT_EQ(of(c, "k").first, 20 * 64);
  EXPECT_EQ(of(c, "k").end, 701 * 64)
      << "slots 999 and 3 hold new tokens, which come from k_extend";
  EXPECT_EQ(of(c, "block table").first, 4);
  EXPECT_EQ(of(c, "block table").end, 6);
  EXPECT_EQ(of(c, "new k").end, 3 * 64);
}

TEST(AddressIntervals, OfDecodeCoverTheStore) {
  DecodeCall c;
  c.query = c.output = contiguous(Dtype::bf16, {1, 4, 32});
  c.key = c.value = contiguous(Dtype::bf16, {1, 2, 32});
  c.k_buffer = c.v_buffer = contiguous(Dtype::bf16, {1000, 2, 32});
  c.loc = int_array(Dtype::int64, {900});
  c.attn_logits = contiguous(Dtype::f32, {1, 4, 8, 33});
  c.req_to_token = int_matrix(Dtype::int32, 1, 3, {10, 11, 12});
  c.req_pool_indices = int_array(Dtype::int64, {0});
  c.seq_lens = int_array(Dtype::int64, {3});
  EXPECT_EQ(of(c, "v").first, 10 * 64);
  EXPECT_EQ(of(c, "v").end, 901 * 64);
  EXPECT_EQ(of(c, "split workspace").end, 4 * 8 * 33);
}

TEST(AddressIntervals, OfMlaFollowTheIndices) {
  MlaDecodeCall c;
  c.q = contiguous(Dtype::bf16, {2, 16, 576});
  c.o = contiguous(Dtype::bf16, {2, 16, 512});
  c.kv_buffer = contiguous(Dtype::bf16, {5000, 1, 1, 576});
  c.qo_indptr = int_array(Dtype::int32, {0, 2});
  c.kv_indptr = int_array(Dtype::int32, {0, 3});
  c.kv_indices = int_array(Dtype::int32, {4000, 3, 17});
  c.kv_last_page_lens = int_array(Dtype::int32, {1});
  EXPECT_EQ(of(c, "kv").first, 3 * 576);
  EXPECT_EQ(of(c, "kv").end, 4001 * 576);
  EXPECT_EQ(of(c, "block table").end, 3);
}

TEST(AddressIntervals, OfBatchPrefillFollowTheSlots) {
  BatchPrefillCall c;
  c.q = contiguous(Dtype::bf16, {3, 4, 64});
  c.k = c.v = contiguous(Dtype::bf16, {1000, 2, 64});
  c.cu_seqlens_q = int_array(Dtype::int32, {0, 1, 3});
  c.kv_indptr = int_array(Dtype::int32, {0, 2, 5});
  c.kv_page_indices = int_array(Dtype::int32, {10, 700, 20, 30, 40, 999, 999});
  EXPECT_EQ(of(c, "k").first, 10 * 128);
  EXPECT_EQ(of(c, "k").end, 701 * 128) << "entries past the last key are not followed";
  EXPECT_EQ(of(c, "block table").end, 5);
  EXPECT_EQ(of(c, "q").end, 3 * 256);
}

TEST(AddressIntervals, OfPagedRaggedEndWithTheLastPartition) {
  PagedRaggedCall c;
  c.query = c.out = contiguous(Dtype::bf16, {2, 4, 64});
  c.key_cache = c.value_cache = contiguous(Dtype::bf16, {1000, 1, 2, 64});
  c.workspace_buffer = contiguous(Dtype::uint8, {4096});
  c.kv_indptr = int_array(Dtype::int32, {0, 2, 5});
  c.kv_page_indices = int_array(Dtype::int32, {10, 700, 20, 30, 999});
  c.kv_last_page_lens = int_array(Dtype::int32, {1, 1});
  EXPECT_EQ(of(c, "k").end, 1000 * 128);
  EXPECT_EQ(of(c, "split workspace").end, 4096);
  c.partition_size = 2;
  EXPECT_EQ(of(c, "k").end, 701 * 128);
  EXPECT_EQ(of(c, "block table").end, 4);
}

TEST(AddressIntervals, OfLegacyExtendCoverTheCommittedKeysAlone) {
  LegacyExtendCall c;
  c.q_extend = c.o_extend = contiguous(Dtype::bf16, {3, 4, 64});
  c.k_extend = c.v_extend = contiguous(Dtype::bf16, {3, 2, 64});
  c.k_buffer = c.v_buffer = contiguous(Dtype::bf16, {1000, 2, 64});
  c.qo_indptr = int_array(Dtype::int32, {0, 1, 3});
  c.kv_indptr = int_array(Dtype::int32, {0, 2, 5});
  c.kv_indices = int_array(Dtype::int64, {10, 700, 20, 30, 40});
  EXPECT_EQ(of(c, "k").first, 10 * 128);
  EXPECT_EQ(of(c, "k").end, 701 * 128);
  EXPECT_EQ(of(c, "new k").end, 3 * 128);
  c.sliding_window_size = 0;  // each row sees itself
  EXPECT_EQ(of(c, "new k").end, 3 * 128);
}

TEST(AddressIntervals, OfVllmCpuHaveHeadsBeforeTokens) {
  VllmCpuCall c;
  c.query = c.output = contiguous(Dtype::bf16, {3, 4, 64});
  c.key_cache = c.value_cache = contiguous(Dtype::bf16, {10, 2, 32, 64});
  c.query_start_loc = int_array(Dtype::int32, {0, 3});
  c.seq_lens = int_array(Dtype::int32, {40});
  c.block_table = int_matrix(Dtype::int32, 1, 2, {5, 2});
  EXPECT_EQ(of(c, "k").first, 2 * 4096);  // 8 tokens of page 2, head 0
  EXPECT_EQ(of(c, "k").end, 6 * 4096);    // the whole of page 5
  c.sliding_window = 4;                   // tokens 34 to 39
  EXPECT_EQ(of(c, "k").first, 2 * 4096 + 2 * 64);
  EXPECT_EQ(of(c, "k").end, 2 * 4096 + 2048 + 8 * 64);  // head 1
  EXPECT_EQ(of(c, "q").end, 3 * 256);
}

TEST(AddressIntervals, SurviveNumbersThatNoMemoryHas) {
  UnifiedCall c = paged_call();
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  c.k.strides = {most, -most, most, most};
  c.block_table.values.assign(5, -most);
  c.seqused_k.values = {most};
  c.cu_seqlens_q.values = {-most, most};
  c.out.strides = {most, most, 1};
  for (const AddressInterval& interval : address_intervals(c)) {
    EXPECT_LE(interval.first, interval.end) << to_string(interval);
  }
  EXPECT_LT(of(c, "k").first, 0);
  c.seqused_k.values.clear();
  c.cu_seqlens_q.values.clear();
  c.block_table.values.clear();
  EXPECT_TRUE(address_intervals(c).empty()) << "nothing recorded, nothing known";
}

TEST(Boundaries, PutAnIntervalBelowAcrossOrAbove) {
  const Boundary bytes{31, OffsetUnit::bytes};
  const std::int64_t edge = std::int64_t{1} << 30;  // elements of two bytes
  EXPECT_EQ(side_of({"k", 2, 0, edge}, bytes), Side::below);
  EXPECT_EQ(side_of({"k", 2, 0, edge + 1}, bytes), Side::straddling);
  EXPECT_EQ(side_of({"k", 2, edge - 1, edge + 1}, bytes), Side::straddling);
  EXPECT_EQ(side_of({"k", 2, edge, edge + 1}, bytes), Side::above);
  EXPECT_EQ(side_of({"k", 2, edge, edge + 1}, {31, OffsetUnit::elements}), Side::below);
  EXPECT_EQ(side_of({"k", 1, 2 * edge, 2 * edge + 1}, {31, OffsetUnit::elements}), Side::above);
}

TEST(Boundaries, AreWrittenOutWithWhatIsKnownOfAnInterval) {
  EXPECT_EQ(grouped(2147450880), "2,147,450,880");
  EXPECT_EQ(grouped(-2147450880), "-2,147,450,880");
  EXPECT_EQ(grouped(-147), "-147");
  EXPECT_EQ(grouped(1000), "1,000");
  const AddressInterval past{"k", 2, std::int64_t{1} << 30, (std::int64_t{1} << 30) + 64};
  EXPECT_EQ(to_string(past),
            "k bytes [2,147,483,648, 2,147,483,776), past 2^31 bytes, below 2^32 "
            "bytes");
  const AddressInterval before{"v", 1, -5, 100};
  EXPECT_THAT(to_string(before), HasSubstr("before its first element (the metadata name a page"));
}

TEST(Crossings, AreReachedOnTheirSideAloneAndCloseToTheBoundary) {
  UnifiedCall c = paged_call();
  c.k.strides[0] = std::int64_t{1} << 28;  // pages 2, 5 and 9: 2^29 to 9 * 2^28 elements
  const Crossing across{"k", {31, OffsetUnit::bytes}, Side::straddling};
  EXPECT_EQ(not_reached(across, c), std::nullopt);
  Crossing other = across;
  other.side = Side::above;
  EXPECT_THAT(not_reached(other, c).value(), HasSubstr("aims above 2^31 bytes in k"));
  other = across;
  other.operand = "v";
  EXPECT_THAT(not_reached(other, c).value(), HasSubstr("but the call touches v bytes"));
  other.side = Side::below;
  EXPECT_TRUE(not_reached(other, c)) << "far below is not just below";
  c.v.strides[0] = (1 << 30) / 10;
  EXPECT_TRUE(not_reached(other, c));
  c.v.strides[0] = ((1 << 30) - 16 * 128) / 9;
  EXPECT_EQ(not_reached(other, c), std::nullopt);
  other.operand = "sinks";
  EXPECT_THAT(not_reached(other, c).value(), HasSubstr("does not touch"));
}

}  // namespace
}  // namespace attest
