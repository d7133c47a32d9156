#include "contracts/slot_map.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace attest {
namespace {

Problem two_requests(std::int64_t page_size, std::int64_t num_pages) {
  Problem p;
  p.pool = {.page_size = page_size, .num_pages = num_pages, .seed = 7};
  p.requests = {{.sequence = 1, .committed = 30, .new_tokens = 4},
                {.sequence = 2, .committed = 5, .new_tokens = 3}};
  return p;
}

std::set<std::int64_t> used_slots(const Problem& p, const SlotMap& map) {
  std::set<std::int64_t> slots;
  std::int64_t tokens = 0;
  for (std::size_t i = 0; i < p.requests.size(); ++i) {
    for (std::int64_t t = 0; t < p.requests[i].kv_len(); ++t, ++tokens) {
      slots.insert(map.slot(i, t));
    }
  }
  EXPECT_EQ(static_cast<std::int64_t>(slots.size()), tokens) << "two tokens share a slot";
  return slots;
}

TEST(SlotMap, EveryPlacementGivesEachTokenItsOwnSlotInThePool) {
  for (const auto placement : {Placement::permuted, Placement::sequential, Placement::high}) {
    for (const std::int64_t num_pages : {4, 5, 100, 1'000'000'000}) {
      Problem p = two_requests(16, num_pages);
      p.pool.placement = placement;
      ASSERT_EQ(problem_error(p), std::nullopt);
      const auto slots = used_slots(p, make_slot_map(p));
      EXPECT_GE(*slots.begin(), 0);
      EXPECT_LT(*slots.rbegin(), 16 * num_pages);
    }
  }
}

TEST(SlotMap, HighUsesTheLastPagesAndSequentialTheFirst) {
  Problem p = two_requests(16, 1000);
  p.pool.placement = Placement::high;
  EXPECT_GE(*used_slots(p, make_slot_map(p)).begin(), 16 * 996);
  p.pool.placement = Placement::sequential;
  EXPECT_EQ(make_slot_map(p).pages[1][0], 3);
}

TEST(SlotMap, TheSeedChoosesThePagesAndEqualSeedsChooseAlike) {
  Problem p = two_requests(1, 5000);
  const SlotMap first = make_slot_map(p);
  EXPECT_EQ(make_slot_map(p).pages, first.pages);
  p.pool.seed = 8;
  EXPECT_NE(make_slot_map(p).pages, first.pages);
}

TEST(SlotMap, OnlyWholePagesOfASharedPrefixAreShared) {
  Problem p = two_requests(16, 100);
  p.requests[1] = {
      .sequence = 2, .committed = 40, .new_tokens = 2, .shared_prefix = 24, .shared_sequence = 1};
  const SlotMap map = make_slot_map(p);
  EXPECT_EQ(map.slot(0, 0), map.slot(1, 0));
  EXPECT_EQ(map.slot(0, 15), map.slot(1, 15));
  EXPECT_NE(map.slot(0, 16), map.slot(1, 16));
  const auto contents = contents_by_slot(p, map);
  EXPECT_EQ(contents.at(map.slot(1, 20)), (ContentKey{1, 20}));
  EXPECT_EQ(contents.at(map.slot(1, 24)), (ContentKey{2, 24}));
}

TEST(SlotMap, AWrittenPageIsNeverShared) {
  Problem p = two_requests(16, 100);
  p.requests[1] = {.sequence = 1, .committed = 30, .new_tokens = 4};
  const SlotMap map = make_slot_map(p);
  EXPECT_EQ(map.slot(0, 15), map.slot(1, 15));
  EXPECT_NE(map.slot(0, 30), map.slot(1, 30));
}

TEST(SlotMap, PaddedRowsShareReservedPageZero) {
  Problem p = two_requests(16, 8);
  p.requests.push_back({.sequence = 0, .committed = 0, .new_tokens = 1, .live = false});
  const SlotMap map = make_slot_map(p);
  EXPECT_EQ(map.slot(2, 0), 0);
  EXPECT_EQ(pages_needed(p), 5);
  for (const auto& [slot, key] : contents_by_slot(p, map)) EXPECT_GE(slot, 16);
}

TEST(SlotMap, ListedSlotsThatKeepPagesTogetherStayPages) {
  Problem p = two_requests(16, 100);
  p.pool.slots = {{{-1, 16}, {160, 16}, {48, 2}}, {{320, 8}}};
  ASSERT_EQ(problem_error(p), std::nullopt);
  const SlotMap map = make_slot_map(p);
  EXPECT_EQ(map.page_size, 16);
  EXPECT_EQ(map.slot(0, 3), -1) << "evicted";
  EXPECT_EQ(map.slot(0, 33), 49);
  EXPECT_EQ(map.slot(1, 7), 327);
}

TEST(SlotMap, ListedSlotsThatBreakPagesAreMappedOneByOne) {
  Problem p = two_requests(16, 100);
  p.pool.slots = {{{160, 30}, {7, 4}}, {{321, 8}}};
  const SlotMap map = make_slot_map(p);
  EXPECT_EQ(map.page_size, 1);
  EXPECT_EQ(map.slot(0, 30), 7);
  EXPECT_EQ(map.slot(1, 0), 321);
}

TEST(SlotMap, EncoderTokensHaveTheirOwnSlotsAtNegativePositions) {
  Problem p = two_requests(1, 100);
  p.requests[0].encoder_tokens = 3;
  const SlotMap map = make_slot_map(p);
  ASSERT_EQ(map.encoder_slots[0].size(), 3U);
  EXPECT_EQ(contents_by_slot(p, map).at(map.encoder_slots[0][2]), (ContentKey{1, -3}));
}

}  // namespace
}  // namespace attest
