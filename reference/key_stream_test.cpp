#include "reference/key_stream.hpp"

#include <gtest/gtest.h>

#include <numeric>

namespace attest {
namespace {

Attended rows_seeing(std::vector<std::vector<KeyRun>> keys) {
  Attended meaning;
  for (auto& runs : keys) meaning.rows.push_back({.keys = std::move(runs)});
  return meaning;
}

KeyStream stream_of(const Attended& meaning) {
  std::vector<std::int64_t> rows(meaning.rows.size());
  std::iota(rows.begin(), rows.end(), 0);
  return make_key_stream(meaning, rows);
}

using Intervals = std::vector<StreamInterval>;

TEST(KeyStream, CausalRowsShareOneRun) {
  const KeyStream s = stream_of(rows_seeing({{{7, 0, 11}}, {{7, 0, 12}}, {{7, 0, 13}}}));
  EXPECT_EQ(s.runs, (std::vector<StreamRun>{{{7, 0, 13}, 0}}));
  EXPECT_EQ(s.length, 13);
  EXPECT_EQ(s.visible[0], (Intervals{{0, 11}}));
  EXPECT_EQ(s.visible[2], (Intervals{{0, 13}}));
}

TEST(KeyStream, AWindowStartsWhereTheFirstRowsWindowDoes) {
  const KeyStream s = stream_of(rows_seeing({{{7, 5, 4}}, {{7, 6, 4}}}));
  EXPECT_EQ(s.length, 5);
  EXPECT_EQ(s.visible[0], (Intervals{{0, 4}}));
  EXPECT_EQ(s.visible[1], (Intervals{{1, 5}}));
}

TEST(KeyStream, ATreesBranchIsAnIntervalOfItsOwn) {
  const KeyStream s = stream_of(rows_seeing({{{7, 0, 11}}, {{7, 0, 10}, {7, 11, 1}}}));
  EXPECT_EQ(s.length, 12);
  EXPECT_EQ(s.visible[1], (Intervals{{0, 10}, {11, 12}}));
}

TEST(KeyStream, SequencesStandOneAfterTheOther) {
  const KeyStream s = stream_of(rows_seeing({{{2, 0, 6}, {5, 6, 5}}, {{2, 0, 6}, {5, 6, 6}}}));
  EXPECT_EQ(s.runs, (std::vector<StreamRun>{{{2, 0, 6}, 0}, {{5, 6, 6}, 6}}));
  EXPECT_EQ(s.visible[0], (Intervals{{0, 11}})) << "touching intervals are joined";
}

TEST(KeyStream, AKeyThatOneRowReadsTwiceStandsTwice) {
  const KeyStream s = stream_of(rows_seeing({{{7, 0, 8}, {7, 4, 2}}, {{7, 0, 8}}}));
  EXPECT_EQ(s.length, 10);
  EXPECT_EQ(s.runs, (std::vector<StreamRun>{{{7, 0, 8}, 0}, {{7, 4, 2}, 8}}));
  EXPECT_EQ(s.visible[0], (Intervals{{0, 10}}));
  EXPECT_EQ(s.visible[1], (Intervals{{0, 8}}));
}

TEST(KeyStream, UnknownSlotsAreLeftOutAndMarked) {
  const KeyStream s = stream_of(rows_seeing({{{unknown_sequence, 40, 3}, {7, 0, 8}}, {{7, 0, 8}}}));
  EXPECT_EQ(s.length, 8);
  EXPECT_EQ(s.sees_unknown, (std::vector<std::uint8_t>{1, 0}));
  EXPECT_EQ(s.visible[0], s.visible[1]);
}

TEST(KeyStream, PiecesCoverAPartOfTheStreamInOrder) {
  const KeyStream s = stream_of(rows_seeing({{{2, 10, 6}, {5, -4, 4}}}));
  std::vector<std::array<std::int64_t, 4>> pieces;
  for_each_piece(s, {4, 9}, [&](auto sequence, auto first, auto count, auto offset) {
    pieces.push_back({sequence, first, count, offset});
  });
  EXPECT_EQ(pieces, (std::vector<std::array<std::int64_t, 4>>{{2, 14, 2, 4}, {5, -4, 3, 6}}));
}

TEST(KeyStream, OfNoRowIsEmpty) {
  EXPECT_EQ(stream_of(rows_seeing({})).length, 0);
  EXPECT_EQ(stream_of(rows_seeing({{}})).visible[0], Intervals{});
}

}  // namespace
}  // namespace attest
