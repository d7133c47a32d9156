#include "backends/hip/route.hpp"

#include <gtest/gtest.h>

namespace attest::hip {
namespace {

RouteInput verify(std::int64_t batch, std::int64_t group, std::int64_t kv_heads,
                  std::int64_t keys) {
  RouteInput input;
  input.batch = batch;
  input.max_seqlen_q = 4;
  input.total_rows = 4 * batch;
  input.group = group;
  input.num_kv_heads = kv_heads;
  input.max_seqlen_k = keys;
  return input;
}

TEST(Route, TakesTheSmallestBlockThatHoldsARequestsRows) {
  EXPECT_EQ(choose_route(verify(1, 4, 8, 1000)).row_groups, 1);
  EXPECT_EQ(choose_route(verify(1, 5, 8, 1000)).row_groups, 2);
  EXPECT_EQ(choose_route(verify(1, 8, 8, 1000)).row_groups, 2);
  EXPECT_EQ(choose_route(verify(1, 16, 2, 1000)).row_groups, 4);
  EXPECT_EQ(choose_route(verify(1, 64, 1, 1000)).row_groups, 4);
}

TEST(Route, SplitsLongKeysOfFewRequests) {
  const Route few = choose_route(verify(1, 16, 2, 40960));
  EXPECT_GT(few.splits, 64);
  EXPECT_EQ(few.form(), "split " + std::to_string(few.splits));
  EXPECT_LT(choose_route(verify(8, 16, 2, 40960)).splits, few.splits);
}

TEST(Route, LeavesAFullGridWhole) {
  const Route route = choose_route(verify(512, 8, 8, 40960));
  EXPECT_EQ(route.splits, 1);
  EXPECT_EQ(route.form(), "2d");
}

// The other half of a reroute: what wins at 40k keys loses at a few.
TEST(Route, NeverSplitsFewKeys) {
  for (const std::int64_t keys : {0, 1, 128, 255}) {
    EXPECT_EQ(choose_route(verify(1, 16, 2, keys)).splits, 1) << keys;
  }
  for (const std::int64_t keys : {256, 1024, 8192, 40960}) {
    const Route route = choose_route(verify(1, 16, 2, keys));
    EXPECT_GE(keys / route.splits, fewest_keys_of_a_split) << keys;
    EXPECT_GE(route.splits, 2) << keys;
  }
}

TEST(Route, CountsOnlyTheKeysOfAWindow) {
  RouteInput input = verify(1, 16, 2, 40960);
  input.window_left = 127;
  EXPECT_EQ(choose_route(input).splits, 1);
  input.window_left = 4095;
  EXPECT_LE(choose_route(input).splits, 4099 / fewest_keys_of_a_split);
}

TEST(Route, IsTwoDimensionalForNonsense) {
  RouteInput input = verify(1, 16, 2, 40960);
  for (std::int64_t RouteInput::* field :
       {&RouteInput::batch, &RouteInput::total_rows, &RouteInput::max_seqlen_q,
        &RouteInput::max_seqlen_k, &RouteInput::group, &RouteInput::num_kv_heads,
        &RouteInput::multiprocessors}) {
    for (const std::int64_t value : {std::int64_t{0}, std::int64_t{-1}, std::int64_t{1} << 40}) {
      RouteInput bad = input;
      bad.*field = value;
      EXPECT_EQ(choose_route(bad).splits, 1) << value;
    }
  }
}

TEST(Route, HasRoomForEveryRequestsBlocks) {
  for (const std::int64_t group : {1, 3, 5, 16, 71}) {
    for (const int groups : {1, 2, 4}) {
      RouteInput input = verify(7, group, 2, 100);
      const std::int64_t each = (4 * group + 16 * groups - 1) / (16 * groups);
      EXPECT_GE(grid_blocks(input, groups), 7 * each) << group << ' ' << groups;
    }
  }
}

}  // namespace
}  // namespace attest::hip
