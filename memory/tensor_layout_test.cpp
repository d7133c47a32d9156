#include "memory/tensor_layout.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

namespace attest {
namespace {

TEST(TensorLayout, AddressesPagesAndSlots) {
  const PoolLayout paged = pool_layout(contiguous(Dtype::bf16, {10, 16, 2, 64}), 16, "K pool");
  const PoolLayout slots = pool_layout(contiguous(Dtype::bf16, {160, 2, 64}), 16, "K pool");
  const PoolLayout ones = pool_layout(contiguous(Dtype::bf16, {160, 1, 2, 64}), 16, "K pool");
  for (const PoolLayout& layout : {paged, slots, ones}) {
    EXPECT_EQ(layout.slots, 160);
    EXPECT_EQ(layout.unit_slots, 16);
    EXPECT_EQ(layout.units(), 10);
    EXPECT_EQ(layout.span_bytes(), 160 * 2 * 64 * 2);
    EXPECT_EQ(layout.unit_begin(3), 3 * 16 * 256);
    EXPECT_EQ(layout.unit_end(3), 4 * 16 * 256);
    for (std::int64_t slot = 0; slot < 160; ++slot) EXPECT_EQ(layout.offset(slot), slot * 128);
  }
}

TEST(TensorLayout, HonoursStrides) {
  TensorMeta meta = contiguous(Dtype::f32, {4, 8, 2, 32});
  meta.strides = {1000, 32, 8 * 32, 1};  // head-major pages, spaced apart
  const PoolLayout layout = pool_layout(meta, 8, "K pool");
  EXPECT_EQ(layout.offset(9), 1032);
  EXPECT_EQ(layout.unit_begin(1), 4000);
  EXPECT_EQ(layout.unit_end(1), 4000 + 2 * 8 * 32 * 4);
  EXPECT_EQ(layout.span_bytes(), 12000 + 2 * 8 * 32 * 4);
}

TEST(TensorLayout, CollapsesStrideZeroHeads) {
  TensorMeta meta = contiguous(Dtype::bf16, {4, 8, 16, 32});
  meta.strides = {8 * 32, 32, 0, 1};
  EXPECT_EQ(pool_layout(meta, 8, "K pool").heads, 1);
}

TEST(TensorLayout, ShowsWholePagesUnderViewsOfOtherPageSizes) {
  EXPECT_EQ(pool_layout(contiguous(Dtype::bf16, {10, 64, 1, 8}), 16, "").unit_slots, 64);
  EXPECT_EQ(pool_layout(contiguous(Dtype::bf16, {40, 16, 1, 8}), 64, "").unit_slots, 64);
  const PoolLayout odd = pool_layout(contiguous(Dtype::bf16, {37, 1, 8}), 7, "");
  EXPECT_EQ(odd.units(), 6);
  EXPECT_EQ(odd.unit_end_slot(5), 37);
  EXPECT_EQ(odd.span_bytes(), 37 * 16);
}

TEST(TensorLayout, RefusesWhatItCannotAddress) {
  const auto why = [](const TensorMeta& meta) -> std::string {
    try {
      pool_layout(meta, 8, "K pool");
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "accepted";
  };
  TensorMeta meta = contiguous(Dtype::bf16, {4, 8, 2, 32});
  meta.strides = {8 * 32, 32, 4 * 8 * 32, 1};
  EXPECT_EQ(why(meta),
            "K pool: pages interleave in memory: page 0 ends at byte 2560, page 1 starts at byte "
            "512");
  meta.strides = {512, 64, 32, 2};
  EXPECT_EQ(why(meta), "K pool: the last stride is 2, must be 1");
  meta.strides = {512, -64, 32, 1};
  EXPECT_EQ(why(meta), "K pool: stride[1] = -64 < 0");
  meta.strides = {512, 64};
  EXPECT_EQ(why(meta), "K pool: 4 sizes but 2 strides");
  EXPECT_EQ(why(contiguous(Dtype::bf16, {4, 8})), "K pool: has 2 dimensions, must have 3 or 4");
  EXPECT_EQ(why(contiguous(Dtype::uint8, {4, 8, 2, 32})),
            "K pool: dtype uint8 is not a floating type");
}

TEST(TensorLayout, SpansRowTensors) {
  TensorMeta meta = contiguous(Dtype::bf16, {3, 2, 5});
  EXPECT_EQ(row_layout(meta, "q").span_bytes(), 60U);
  meta.strides = {100, 7, 1};
  EXPECT_EQ(row_layout(meta, "q").span_bytes(), (200U + 7 + 5) * 2);
  meta.shape[0] = 0;
  EXPECT_EQ(row_layout(meta, "q").span_bytes(), 0U);
}

}  // namespace
}  // namespace attest
