#include "contracts/signatures/unified_launch.hpp"

#include <gtest/gtest.h>

namespace attest {
namespace {

UnifiedCall shaped(std::int64_t batch, std::int64_t rows, std::int64_t q_heads,
                   std::int64_t kv_heads, std::int64_t page_size, std::int64_t longest) {
  UnifiedCall call;
  call.q = contiguous(Dtype::bf16, {batch * rows, q_heads, 128});
  call.k = call.v = contiguous(Dtype::bf16, {1024, page_size, kv_heads, 128});
  call.seqused_k =
      int_array(Dtype::int64, std::vector<std::int64_t>(static_cast<std::size_t>(batch), longest));
  call.max_seqlen_q = rows;
  call.max_seqlen_k = longest;
  return call;
}

TEST(UnifiedLaunch, SplitsALongContextOfASmallBatch) {
  // Group 4: 4 queries a block, 16 / 4 + 4 = 8 blocks, 64 programs; 4 * 304 * 4 / 64 = 76.
  EXPECT_EQ(unified_launch(shaped(4, 4, 32, 8, 64, 40960)),
            (Launch{.form = "3d", .kv_splits = 128, .queries_per_kv = 4}));
  // Group 16: one query a block, 16 + 4 = 20 blocks, 40 programs.
  EXPECT_EQ(unified_launch(shaped(4, 4, 32, 2, 64, 40960)),
            (Launch{.form = "3d", .kv_splits = 128, .queries_per_kv = 16}));
  // 4 * 304 * 4 / (256 * 2) = 9.5, so 10, so 16.
  EXPECT_EQ(unified_launch(shaped(256, 1, 32, 2, 64, 40960)).kv_splits, 16);
}

TEST(UnifiedLaunch, NeverSplitsFinerThanTiles) {
  EXPECT_EQ(unified_launch(shaped(1, 1, 8, 8, 64, 513)).kv_splits, 16);  // 9 tiles
  EXPECT_EQ(unified_launch(shaped(1, 1, 8, 8, 16, 513)).kv_splits, 64);  // 33 tiles
}

TEST(UnifiedLaunch, StaysWholeWhereSplittingDoesNotPay) {
  EXPECT_EQ(unified_launch(shaped(4, 4, 32, 8, 64, 512)).form, "2d");
  EXPECT_EQ(unified_launch(shaped(256, 1, 64, 8, 64, 40960)).form, "2d");  // 2048 programs
  UnifiedCall windowed = shaped(4, 4, 32, 8, 64, 40960);
  windowed.window_size = {127, 0};
  EXPECT_EQ(unified_launch(windowed).form, "2d");
  UnifiedCall wide = shaped(4, 4, 32, 8, 64, 40960);
  wide.q = contiguous(Dtype::bf16, {16, 32, 512});
  EXPECT_EQ(unified_launch(wide).form, "2d");
}

TEST(UnifiedLaunch, DependsOnTheComputeUnits) {
  const UnifiedCall call = shaped(150, 1, 64, 8, 64, 40960);  // 1200 programs
  EXPECT_EQ(unified_launch(call, mi300x_compute_units).form, "3d");
  EXPECT_EQ(unified_launch(call, 256).form, "2d");
}

TEST(UnifiedLaunch, ExpandedHeadsShareNothing) {
  EXPECT_EQ(unified_launch(shaped(4, 4, 32, 32, 64, 40960)).queries_per_kv, 1);
}

TEST(UnifiedLaunch, SplitFormRefusesPagesThatNoTileFits) {
  EXPECT_FALSE(split_tile_fits_page(shaped(1, 1, 8, 8, 48, 4096)));
  EXPECT_TRUE(split_tile_fits_page(shaped(1, 1, 8, 8, 96, 4096)));
  EXPECT_TRUE(split_tile_fits_page(shaped(1, 1, 8, 8, 1, 4096)));
}

TEST(UnifiedLaunch, NonsenseIsNotSplit) {
  EXPECT_EQ(unified_launch(UnifiedCall{}).form, "2d");
  UnifiedCall call = shaped(4, 4, 32, 8, 64, 40960);
  call.k.shape[2] = 0;
  EXPECT_EQ(unified_launch(call).form, "2d");
  call = shaped(4, 4, 32, 8, 64, 40960);
  call.q.shape[0] = std::int64_t{1} << 62;
  call.max_seqlen_k = std::int64_t{1} << 62;
  EXPECT_EQ(unified_launch(call).form, "2d");
}

TEST(UnifiedLaunch, AsksForEveryKeyOncePerLoad) {
  UnifiedCall call = shaped(2, 4, 32, 8, 64, 4096);
  constexpr std::int64_t row = 2 * 128 * 2;  // K and V of one key and head, bf16
  EXPECT_EQ(kv_bytes_requested(call, {.form = "3d", .kv_splits = 8, .queries_per_kv = 4}),
            2 * 4096 * 8 * row);
  EXPECT_EQ(kv_bytes_requested(call, {.queries_per_kv = 1}), 2 * 4096 * 32 * row)
      << "each q head loads for itself";
  UnifiedCall expanded = shaped(2, 4, 32, 32, 64, 4096);
  EXPECT_EQ(kv_bytes_requested(expanded, unified_launch(expanded)), 2 * 4096 * 32 * row)
      << "so does each of the expanded heads";
}

TEST(UnifiedLaunch, AsksForTheWindowWhereTheFormSkipsTheRest) {
  UnifiedCall call = shaped(1, 4, 32, 8, 64, 4096);
  call.window_size = {127, 0};
  constexpr std::int64_t row = 2 * 128 * 2;
  EXPECT_EQ(kv_bytes_requested(call, {.form = "2d", .queries_per_kv = 4}), 131 * 8 * row);
  EXPECT_EQ(kv_bytes_requested(call, {.form = "3d", .queries_per_kv = 4}), 4096 * 8 * row);
}

TEST(UnifiedLaunch, AsksForNothingWhereTheCallIsNonsense) {
  EXPECT_EQ(kv_bytes_requested(UnifiedCall{}, {}), 0);
  UnifiedCall call = shaped(1, 1, 32, 8, 64, 128);
  call.k.shape[3] = std::int64_t{1} << 62;
  EXPECT_EQ(kv_bytes_requested(call, {}), 0);
  call = shaped(1, 1, 32, 8, 64, 128);
  EXPECT_EQ(kv_bytes_requested(call, {.queries_per_kv = 0}), 0);
  call.seqused_k.values = {-5};
  EXPECT_EQ(kv_bytes_requested(call, {}), 0);
}

}  // namespace
}  // namespace attest
