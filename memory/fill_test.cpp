#include "memory/fill.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

#include "memory/guarded_buffer.hpp"
#include "memory/normal_table.hpp"

namespace attest {
namespace {

constexpr std::array floating = {Dtype::f32, Dtype::f16, Dtype::bf16, Dtype::fp8_e4m3fn,
                                 Dtype::fp8_e4m3fnuz};

template <class Write>
std::vector<std::byte> bits(Dtype dtype, std::int64_t count, Write&& write) {
  std::vector<std::byte> row(static_cast<std::size_t>(count) * size_bytes(dtype), std::byte{0xee});
  write(row_of_bits(row, dtype, count, "row"));
  return row;
}

template <class Write>
std::vector<double> decoded(std::int64_t count, Write&& write) {
  std::vector<double> row(static_cast<std::size_t>(count));
  write(row_of_doubles(row, count, "row"));
  return row;
}

std::vector<double> decode_all(Dtype dtype, const std::vector<std::byte>& row) {
  std::vector<double> values;
  for (std::size_t at = 0; at < row.size(); at += size_bytes(dtype)) {
    std::uint32_t element = 0;
    std::memcpy(&element, row.data() + at, size_bytes(dtype));
    values.push_back(decode(dtype, element));
  }
  return values;
}

TEST(Fill, ComputesAnyElementAlone) {
  for (const Dtype dtype : floating) {
    const NormalTable& table = normal_table(dtype);
    const auto row = decoded(67, [&](const RowOut& out) { write_normal(out, dtype, 99); });
    for (std::int64_t d = 0; d < 67; ++d) {
      EXPECT_EQ(row[static_cast<std::size_t>(d)], table.values[normal_index(99, d)]);
    }
  }
}

TEST(Fill, GivesAPrefixOfALongerRow) {
  const auto normal = [](const RowOut& out) { write_normal(out, Dtype::bf16, 5); };
  const auto signs = [](const RowOut& out) { write_signs(out, Dtype::bf16, 5, 2); };
  for (const std::int64_t count : {1, 3, 4, 5, 63, 64, 65, 127}) {
    auto longer = bits(Dtype::bf16, 200, normal);
    longer.resize(static_cast<std::size_t>(count) * 2);
    EXPECT_EQ(bits(Dtype::bf16, count, normal), longer);
    longer = bits(Dtype::bf16, 200, signs);
    longer.resize(static_cast<std::size_t>(count) * 2);
    EXPECT_EQ(bits(Dtype::bf16, count, signs), longer);
  }
}

TEST(Fill, DecodesToWhatItsBitsMean) {
  for (const Dtype dtype : floating) {
    const auto same = [&](auto&& write) {
      EXPECT_EQ(decode_all(dtype, bits(dtype, 131, write)), decoded(131, write)) << name(dtype);
    };
    same([&](const RowOut& out) { write_normal(out, dtype, 11); });
    same([&](const RowOut& out) { write_normal(out, dtype, 11, 4); });
    same([&](const RowOut& out) { write_normal(out, dtype, 11, -2); });
    same([&](const RowOut& out) { write_signs(out, dtype, 11, 2.5F); });
    same([&](const RowOut& out) { write_signs_of_normal(out, dtype, 11, 1.25F); });
  }
}

TEST(Fill, WritesSignsOfAPattern) {
  const auto row = decoded(130, [](const RowOut& out) { write_signs(out, Dtype::bf16, 3, 2); });
  int negative = 0;
  for (std::int64_t d = 0; d < 130; ++d) {
    EXPECT_EQ(row[static_cast<std::size_t>(d)], is_negative(3, d) ? -2 : 2);
    negative += is_negative(3, d) ? 1 : 0;
  }
  EXPECT_NEAR(negative, 65, 25);
}

TEST(Fill, LeavesTheElementsBeforeTheFirstAlone) {
  const auto row = decoded(130, [](const RowOut& out) {
    write_normal(out, Dtype::bf16, 8);
    write_signs(out, Dtype::bf16, 3, 2, 70);
  });
  const NormalTable& table = normal_table(Dtype::bf16);
  for (std::int64_t d = 0; d < 130; ++d) {
    const double want = d < 70 ? table.values[normal_index(8, d)] : (is_negative(3, d) ? -2 : 2);
    EXPECT_EQ(row[static_cast<std::size_t>(d)], want) << d;
  }
  // Nothing to do when the aligned part lies behind the row.
  const auto shorter = decoded(4, [](const RowOut& out) { write_signs(out, Dtype::f32, 3, 2, 9); });
  EXPECT_EQ(shorter, std::vector<double>(4, 0.0));
}

TEST(Fill, FollowsTheSignsOfANormalRow) {
  for (const Dtype dtype : {Dtype::f32, Dtype::bf16}) {
    const auto row = decoded(129, [&](const RowOut& out) { write_normal(out, dtype, 21, 4); });
    const auto signs =
        decoded(129, [&](const RowOut& out) { write_signs_of_normal(out, dtype, 21, 3); });
    for (std::size_t d = 0; d < row.size(); ++d) EXPECT_EQ(signs[d], row[d] < 0 ? -3 : 3);
  }
}

TEST(Fill, WritesTheSameBitsForever) {
  const auto of = [](Dtype dtype) {
    return fingerprint(
        bits(dtype, 1000, [&](const RowOut& out) { write_normal(out, dtype, 12345); }));
  };
  EXPECT_EQ(of(Dtype::f32), 17837902616191409828ULL);
  EXPECT_EQ(of(Dtype::f16), 9653015553963054929ULL);
  EXPECT_EQ(of(Dtype::bf16), 674781334602825727ULL);
  EXPECT_EQ(of(Dtype::fp8_e4m3fn), 9035330666485838113ULL);
  EXPECT_EQ(of(Dtype::fp8_e4m3fnuz), 9889722432469955277ULL);
}

TEST(Fill, AcceptsUnalignedDestinations) {
  std::vector<std::byte> aligned(200);
  std::vector<std::byte> shifted(201);
  write_normal(row_of_bits(aligned, Dtype::bf16, 100, "row"), Dtype::bf16, 4);
  write_normal(row_of_bits(std::span(shifted).subspan(1), Dtype::bf16, 100, "row"), Dtype::bf16, 4);
  EXPECT_TRUE(std::equal(aligned.begin(), aligned.end(), shifted.begin() + 1));
}

TEST(Fill, RefusesADestinationOfAnotherLength) {
  std::vector<std::byte> bytes(10);
  std::vector<double> values(4);
  EXPECT_THROW(row_of_bits(bytes, Dtype::bf16, 4, "k_row"), std::invalid_argument);
  EXPECT_THROW(row_of_doubles(values, 5, "k_row"), std::invalid_argument);
}

TEST(ValueTables, HoldWhatTheySay) {
  struct Shape {
    Distribution distribution;
    double least, most, mean, mean_square;
  };
  // Of (-1, 1) a third, of (0, 1) a third, of -4 .. 4 sixty ninths.
  constexpr Shape shapes[] = {
      {Distribution::uniform, -1, 1, 0, 1.0 / 3},    {Distribution::positive, 0, 1, 0.5, 1.0 / 3},
      {Distribution::small_int, -4, 4, 0, 60.0 / 9}, {Distribution::sparse_int, -4, 4, 0, 15.0 / 9},
      {Distribution::normal_20, -74, 74, 0, 399.8},  {Distribution::normal, -3.7, 3.7, 0, 0.9996}};
  for (const Shape& shape : shapes) {
    const NormalTable& table = value_table(Dtype::f32, shape.distribution);
    double sum = 0, square = 0;
    for (const float value : table.values) {
      EXPECT_GE(value, shape.least);
      EXPECT_LE(value, shape.most);
      sum += value;
      square += value * value;
    }
    EXPECT_NEAR(sum / normal_entries, shape.mean, 1e-2);
    EXPECT_NEAR(square / normal_entries, shape.mean_square, 2e-3 * shape.mean_square);
  }
}

TEST(ValueTables, AreReadWithTheHashesOfTheNormalOnes) {
  for (const Dtype dtype : floating) {
    const NormalTable& table = value_table(dtype, Distribution::uniform);
    const auto row = decoded(
        37, [&](const RowOut& out) { write_values(out, dtype, 99, Distribution::uniform); });
    const auto encoded = bits(
        dtype, 37, [&](const RowOut& out) { write_values(out, dtype, 99, Distribution::uniform); });
    EXPECT_EQ(decode_all(dtype, encoded), row);
    for (std::int64_t d = 0; d < 37; ++d) {
      EXPECT_EQ(row[static_cast<std::size_t>(d)], table.values[normal_index(99, d)]);
    }
  }
}

}  // namespace
}  // namespace attest
