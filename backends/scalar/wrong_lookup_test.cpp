#include "backends/scalar/wrong_lookup.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

namespace attest {
namespace {

using testing::ElementsAre;

TEST(WrongLookup, IsARightOneWithoutAFault) {
  for (const std::int64_t token : {0, 15, 16, 100}) {
    const TablePlace place = table_place(3, token, 16, Fault::none);
    EXPECT_EQ(place.row, 3);
    EXPECT_EQ(place.column, token / 16);
    EXPECT_EQ(place.behind, 0);
  }
  EXPECT_TRUE(misread_mask(std::array<std::int64_t, 4>{1, 0, 1, 1}, 2, Fault::none).empty());
}

TEST(WrongLookup, OfATableGoesToTheFaultsRowAndColumn) {
  EXPECT_EQ(table_place(3, 50, 16, Fault::request_index_dropped).row, 0);
  EXPECT_EQ(table_place(3, 50, 16, Fault::stale_page).row, 3);
  EXPECT_EQ(table_place(3, 15, 16, Fault::stale_page).row, 2);
  EXPECT_EQ(table_place(3, 16, 16, Fault::page_of_the_token_before).column, 0);
  EXPECT_EQ(list_place(5 * 16, 16, Fault::four_page_ids_reused).column, 1);
  const TablePlace odd = list_place(5 * 16, 16, Fault::odd_page_behind_the_even_one);
  EXPECT_EQ(odd.column, 4);
  EXPECT_EQ(odd.behind, 1);
}

/// Rows whose addresses are their tokens.
class WrongV : public testing::Test {
 protected:
  std::int64_t v_of(std::int64_t token, Fault fault, std::int64_t first_fresh = 1000) {
    const KeyRow key = with_wrong_v(shape_, token, fault, [&](std::int64_t t) {
      return KeyRow{&bytes_[static_cast<std::size_t>(t)], &bytes_[static_cast<std::size_t>(t)],
                    t >= first_fresh};
    });
    EXPECT_EQ(key.k - bytes_.data(), token);
    return key.v - bytes_.data();
  }
  RequestShape shape_{.rows = 4, .length = 201, .page_size = 16, .v_tile = 48};
  std::array<std::byte, 256> bytes_{};
};

TEST_F(WrongV, ComesFromTheFaultsTokenAndKDoesNot) {
  EXPECT_EQ(v_of(70, Fault::none), 70);
  EXPECT_EQ(v_of(70, Fault::v_block_of_v_dims), 48 + 6);
  EXPECT_EQ(v_of(5, Fault::v_page_one_step_late), 5);
  EXPECT_EQ(v_of(70, Fault::v_page_one_step_late), 54);
  EXPECT_EQ(v_of(70, Fault::v_second_half_repeats_the_first), 70);
  EXPECT_EQ(v_of(100, Fault::v_second_half_repeats_the_first), 68);
  EXPECT_EQ(v_of(6, Fault::v_pairs_swapped), 7);
  EXPECT_EQ(v_of(7, Fault::v_pairs_swapped), 6);
  EXPECT_EQ(v_of(200, Fault::v_pairs_swapped), 200);  // the last one has no partner
}

TEST_F(WrongV, StaysInItsTensor) {
  EXPECT_EQ(v_of(6, Fault::v_pairs_swapped, 7), 6);
  EXPECT_EQ(v_of(7, Fault::v_pairs_swapped, 7), 7);
}

// A root, two children of it, a child of each.
constexpr std::array<std::int64_t, 25> tree = {1, 0, 0, 0, 0,  //
                                               1, 1, 0, 0, 0,  //
                                               1, 0, 1, 0, 0,  //
                                               1, 1, 0, 1, 0,  //
                                               1, 0, 1, 0, 1};

TEST(MisreadMasks, ShowWhatTheFaultShows) {
  EXPECT_THAT(misread_mask(tree, 5, Fault::mask_not_read_before_the_block),
              ElementsAre(1, 0, 0, 0, 0,  //
                          1, 1, 0, 0, 0,  //
                          1, 0, 1, 0, 0,  //
                          1, 1, 0, 1, 0,  //
                          1, 1, 1, 1, 1));
  EXPECT_THAT(misread_mask(tree, 5, Fault::mask_read_one_entry_late), ElementsAre(0, 0, 0, 0, 1,  //
                                                                                  1, 0, 0, 0, 1,  //
                                                                                  0, 1, 0, 0, 1,  //
                                                                                  1, 0, 1, 0, 1,  //
                                                                                  0, 1, 0, 1, 1));
  EXPECT_THAT(misread_mask(tree, 5, Fault::tree_seen_by_depth), ElementsAre(1, 0, 0, 0, 0,  //
                                                                            1, 1, 0, 0, 0,  //
                                                                            1, 0, 1, 0, 0,  //
                                                                            1, 1, 1, 1, 0,  //
                                                                            1, 1, 1, 0, 1));
}

TEST(FirstRowTakenOut, StandsBehindTheKeysOfTheRequestBefore) {
  const RequestShape before{.first_row = 0, .rows = 3, .length = 40, .window = 9};
  RequestShape shape{.first_row = 3, .rows = 2, .length = 90};
  const RequestShape row = first_row_taken_out(shape, before);
  EXPECT_EQ(row.first_row, 3);
  EXPECT_EQ(row.rows, 1);
  EXPECT_EQ(row.length, 40);
  EXPECT_EQ(row.window, 9);
  EXPECT_EQ(shape.first_row, 4);
  EXPECT_EQ(shape.rows, 1);
  EXPECT_EQ(first_row_taken_out(shape, before).rows, 0);  // one row alone is left where it is
  EXPECT_EQ(shape.rows, 1);
}

}  // namespace
}  // namespace attest
