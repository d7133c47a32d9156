#include "memory/normal_table.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <stdexcept>

namespace attest {
namespace {

constexpr std::array floating = {Dtype::f32, Dtype::f16, Dtype::bf16, Dtype::fp8_e4m3fn,
                                 Dtype::fp8_e4m3fnuz};

/// The quantile of `p` by bisection of the distribution function.
double quantile(double p) {
  double low = -6;
  double high = 6;
  for (int i = 0; i < 80; ++i) {
    const double middle = (low + high) / 2;
    (std::erfc(-middle / std::sqrt(2.0)) / 2 < p ? low : high) = middle;
  }
  return (low + high) / 2;
}

TEST(NormalTable, HoldsTheQuantilesOfTheNormalDistribution) {
  const NormalTable& table = normal_table(Dtype::f32);
  for (std::int64_t i = 0; i < normal_entries; ++i) {
    const double exact = quantile((static_cast<double>(i) + 0.5) / normal_entries);
    const float got = table.values[static_cast<std::size_t>(i)];
    // Rounded to nearest, so within half an ulp; bisection itself is good to 1e-12 here.
    EXPECT_NEAR(got, exact, std::fabs(exact) * 0x1p-24 + 1e-12) << i;
  }
}

TEST(NormalTable, HasMeanZeroAndVarianceOne) {
  for (const Dtype dtype : floating) {
    const NormalTable& table = normal_table(dtype);
    double sum = 0;
    double squares = 0;
    for (const float value : table.values) {
      sum += value;
      squares += double{value} * value;
    }
    EXPECT_EQ(sum, 0) << name(dtype);  // exactly symmetric
    // 0.9996: the tails beyond 3.67 are cut off.
    EXPECT_NEAR(squares / normal_entries, 1, is_fp8(dtype) ? 3e-3 : 1e-3) << name(dtype);
  }
}

TEST(NormalTable, AscendsAndIsSymmetric) {
  for (const Dtype dtype : floating) {
    for (const int exponent : normal_exponents) {
      const NormalTable& table = normal_table(dtype, exponent);
      for (std::size_t i = 0; i + 1 < table.values.size(); ++i) {
        EXPECT_LE(table.values[i], table.values[i + 1]) << name(dtype) << ' ' << i;
        EXPECT_EQ(table.values[i], -table.values[table.values.size() - 1 - i]);
        EXPECT_TRUE(std::isfinite(table.values[i]));
      }
    }
  }
}

TEST(NormalTable, RoundsOnceFromTheOneTable) {
  const NormalTable& exact = normal_table(Dtype::f32);
  for (const Dtype dtype : floating) {
    for (const int exponent : normal_exponents) {
      const NormalTable& table = normal_table(dtype, exponent);
      for (std::size_t i = 0; i < table.values.size(); ++i) {
        const float wanted = std::ldexp(exact.values[i], exponent);
        EXPECT_EQ(table.values[i], decode(dtype, encode(dtype, wanted))) << name(dtype) << i;
        const std::uint32_t bits = size_bytes(dtype) == 1   ? table.bits8[i]
                                   : size_bytes(dtype) == 2 ? table.bits16[i]
                                                            : table.bits32[i];
        EXPECT_EQ(decode(dtype, bits), table.values[i]);
      }
    }
  }
}

TEST(NormalTable, RoundsLikeTheCastsOfTheFrameworks) {
  for (const Dtype dtype : floating) {
    // Every exponent with mantissas around the rounding borders of every format, both signs.
    for (std::uint32_t exponent = 1; exponent < 255; ++exponent) {
      for (std::uint32_t high = 0; high < 16; ++high) {
        for (const std::uint32_t low : {0x0U, 0x1U, 0x3ffffU, 0x40000U, 0x40001U, 0x7ffffU, 0x1000U,
                                        0xfffU, 0x1001U, 0x8000U, 0x7fffU, 0x8001U}) {
          const std::uint32_t bits = exponent << 23 | high << 19 | low;
          for (const std::uint32_t sign : {0U, 0x80000000U}) {
            const auto value = std::bit_cast<float>(bits | sign);
            ASSERT_EQ(round_f32_bits(dtype, bits | sign), encode(dtype, value))
                << name(dtype) << ' ' << value;
          }
        }
      }
    }
    EXPECT_EQ(round_f32_bits(dtype, 0), encode(dtype, 0.0F));
    EXPECT_EQ(round_f32_bits(dtype, 0x80000000U), encode(dtype, -0.0F));
  }
}

TEST(NormalTable, RefusesWhatItHasNotGot) {
  EXPECT_THROW(normal_table(Dtype::int32), std::invalid_argument);
  EXPECT_THROW(normal_table(Dtype::bf16, 1), std::invalid_argument);
}

}  // namespace
}  // namespace attest
