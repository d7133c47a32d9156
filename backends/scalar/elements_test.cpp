#include "backends/scalar/elements.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

namespace attest {
namespace {

std::vector<std::byte> bytes_of(Dtype dtype, const std::vector<std::uint32_t>& bits) {
  std::vector<std::byte> bytes(bits.size() * size_bytes(dtype));
  for (std::size_t i = 0; i < bits.size(); ++i) {
    std::memcpy(bytes.data() + i * size_bytes(dtype), &bits[i], size_bytes(dtype));
  }
  return bytes;
}

TEST(Elements, WidenEveryBitPatternAsTheContractDecodesIt) {
  for (const Dtype dtype : {Dtype::bf16, Dtype::f16, Dtype::fp8_e4m3fn, Dtype::fp8_e4m3fnuz}) {
    std::vector<std::uint32_t> bits(std::size_t{1} << (8 * size_bytes(dtype)));
    for (std::uint32_t i = 0; i < bits.size(); ++i) bits[i] = i;
    std::vector<float> values(bits.size());
    const std::vector<std::byte> bytes = bytes_of(dtype, bits);
    widen(dtype, bytes.data(), static_cast<std::int64_t>(bits.size()), values.data());
    for (const std::uint32_t i : bits) {
      const float expected = decode(dtype, i);
      if (std::isnan(expected)) {
        ASSERT_TRUE(std::isnan(values[i])) << name(dtype) << " 0x" << std::hex << i;
      } else {
        ASSERT_EQ(values[i], expected) << name(dtype) << " 0x" << std::hex << i;
      }
    }
  }
}

TEST(Elements, RoundProbabilitiesAsTheContractEncodesThem) {
  std::vector<float> values;
  for (std::uint32_t bits = 0; bits <= std::bit_cast<std::uint32_t>(1.0F); bits += 40009) {
    values.push_back(std::bit_cast<float>(bits));
  }
  // Ties of both formats, and f16's subnormals.
  for (const float tie : {0x1.01p-1F, 0x1.03p-1F, 0x1.002p-1F, 0x1.006p-1F, 0x1.8p-25F, 0x1p-25F}) {
    values.push_back(tie);
  }
  for (const Dtype dtype : {Dtype::bf16, Dtype::f16, Dtype::f32}) {
    std::vector<float> rounded = values;
    round_to(dtype, rounded.data(), static_cast<std::int64_t>(rounded.size()));
    for (std::size_t i = 0; i < values.size(); ++i) {
      ASSERT_EQ(rounded[i], decode(dtype, encode(dtype, values[i]))) << name(dtype) << values[i];
    }
  }
}

TEST(Elements, NarrowTowardZeroNeverGrowsAndStaysWithinOneStep) {
  for (const Dtype dtype : {Dtype::bf16, Dtype::f16}) {
    for (const float value : {1.0F, 1.0039F, -1.0039F, 3.14159F, -0.33333F, 0.0F, 6e-8F}) {
      std::uint16_t bits = 0;
      narrow(dtype, &value, 1, reinterpret_cast<std::byte*>(&bits), true);
      const float cut = decode(dtype, bits);
      EXPECT_LE(std::fabs(cut), std::fabs(value));
      const float next = decode(dtype, bits + 1U);
      EXPECT_GT(std::fabs(next), std::fabs(value)) << name(dtype) << " " << value;
    }
  }
}

TEST(Elements, NarrowRoundsToNearest) {
  const float value = 1.0F + 0x1.8p-8F;
  std::uint16_t bits = 0;
  narrow(Dtype::bf16, &value, 1, reinterpret_cast<std::byte*>(&bits), false);
  EXPECT_EQ(decode(Dtype::bf16, bits), 1.0F + 0x1p-7F);
}

}  // namespace
}  // namespace attest
