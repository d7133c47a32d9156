#include "memory/poison.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <set>
#include <vector>

namespace attest {
namespace {

constexpr std::array floating = {Dtype::f32, Dtype::f16, Dtype::bf16, Dtype::fp8_e4m3fn,
                                 Dtype::fp8_e4m3fnuz};

TEST(Poison, IsNanInEveryDtype) {
  for (const Dtype dtype : floating) {
    for (const Region region : all_regions) {
      EXPECT_TRUE(std::isnan(decode(dtype, poison_bits(dtype, Poison::nan, region))))
          << name(dtype);
    }
  }
}

TEST(Poison, NamesTheRegionInTheNan) {
  EXPECT_EQ(poison_bits(Dtype::bf16, Poison::nan, Region::before_base), 0x7fc1U);
  EXPECT_EQ(poison_bits(Dtype::f16, Poison::nan, Region::unreferenced), 0x7fc2U);
  EXPECT_EQ(poison_bits(Dtype::f32, Poison::nan, Region::past_kv_len), 0x7fc37fc3U);
  EXPECT_EQ(poison_bits(Dtype::fp8_e4m3fn, Poison::nan, Region::past_kv_len), 0x7fU);
  EXPECT_EQ(poison_bits(Dtype::fp8_e4m3fnuz, Poison::nan, Region::past_kv_len), 0x80U);
}

TEST(Poison, IsLoudAndFiniteOnRequest) {
  for (const Dtype dtype : floating) {
    std::set<float> values;
    for (const Region region : all_regions) {
      const float value = decode(dtype, poison_bits(dtype, Poison::loud, region));
      EXPECT_TRUE(std::isfinite(value));
      EXPECT_GE(value, is_fp8(dtype) ? 128 : dtype == Dtype::f16 ? 3e4F : 1e30F) << name(dtype);
      values.insert(value);
    }
    EXPECT_EQ(values.size(), all_regions.size()) << name(dtype);
  }
}

TEST(Poison, CanBeReadBack) {
  for (const Dtype dtype : floating) {
    for (const Region region : all_regions) {
      EXPECT_EQ(poisoned_region(dtype, poison_bits(dtype, Poison::loud, region)), region);
      const auto of_nan = poisoned_region(dtype, poison_bits(dtype, Poison::nan, region));
      if (is_fp8(dtype)) {
        EXPECT_EQ(of_nan, std::nullopt);
      } else {
        EXPECT_EQ(of_nan, region);
      }
    }
    EXPECT_EQ(poisoned_region(dtype, encode(dtype, 1.0F)), std::nullopt);
  }
}

TEST(Poison, FillsAndFindsTheFirstOtherByte) {
  for (const Dtype dtype : floating) {
    for (const std::size_t elements : {1U, 7U, 5000U}) {
      std::vector<std::byte> bytes(elements * size_bytes(dtype));
      fill_poison(bytes, dtype, Poison::loud, Region::past_kv_len);
      std::uint32_t last = 0;
      std::memcpy(&last, bytes.data() + bytes.size() - size_bytes(dtype), size_bytes(dtype));
      EXPECT_EQ(last, poison_bits(dtype, Poison::loud, Region::past_kv_len));
      const auto other = [&] {
        return first_not_poison(bytes, dtype, Poison::loud, Region::past_kv_len);
      };
      EXPECT_EQ(other(), std::nullopt);
      for (const std::size_t at : {bytes.size() - 1, bytes.size() / 2, std::size_t{0}}) {
        bytes[at] ^= std::byte{1};
        EXPECT_EQ(other(), at);
        bytes[at] ^= std::byte{1};
      }
    }
  }
}

TEST(Poison, HasNoOpinionOnNothing) {
  fill_poison({}, Dtype::bf16, Poison::nan, Region::past_end);
  EXPECT_EQ(first_not_poison({}, Dtype::bf16, Poison::nan, Region::past_end), std::nullopt);
}

TEST(Poison, IsNamed) {
  for (const Poison poison : {Poison::nan, Poison::loud}) {
    EXPECT_EQ(poison_from_name(name(poison)), poison);
  }
  EXPECT_EQ(poison_from_name("quiet"), std::nullopt);
  EXPECT_EQ(name(Region::before_base), "before the pool");
  EXPECT_EQ(name(Region::past_end), "behind the pool");
}

TEST(Poison, IsAnOrdinaryNumberOnRequest) {
  for (const Dtype dtype : floating) {
    for (const Region region : all_regions) {
      const std::uint32_t bits = poison_bits(dtype, Poison::ordinary, region);
      EXPECT_EQ(decode(dtype, bits), 1 + static_cast<float>(region) / 8) << name(dtype);
      EXPECT_EQ(poisoned_region(dtype, bits), std::nullopt);
    }
  }
}

}  // namespace
}  // namespace attest
