#include "backends/hip/runtime/number_formats.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>

#include "contracts/dtype.hpp"

namespace attest::hip {
namespace {

std::uint32_t bits(float value) { return std::bit_cast<std::uint32_t>(value); }

TEST(NumberFormats, EveryElementWidensAsTheContractSays) {
  for (std::uint32_t i = 0; i < 0x10000; ++i) {
    const auto half = static_cast<std::uint16_t>(i);
    ASSERT_EQ(bits(to_float(Bf16{half})), bits(decode(Dtype::bf16, i))) << i;
    ASSERT_EQ(bits(to_float(Fp16{half})), bits(decode(Dtype::f16, i))) << i;
  }
  for (std::uint32_t i = 0; i < 0x100; ++i) {
    const auto byte = static_cast<std::uint8_t>(i);
    ASSERT_EQ(bits(to_float(E4m3fn{byte})), bits(decode(Dtype::fp8_e4m3fn, i))) << i;
    ASSERT_EQ(bits(to_float(E4m3fnuz{byte})), bits(decode(Dtype::fp8_e4m3fnuz, i))) << i;
  }
}

// All upper halves, with the lower halves at which rounding turns.
TEST(NumberFormats, RoundingAgreesWithTheContract) {
  for (std::uint32_t upper = 0; upper < 0x10000; ++upper) {
    for (const std::uint32_t lower : {0x0000U, 0x0001U, 0x0fffU, 0x1000U, 0x1001U, 0x2fffU, 0x3000U,
                                      0x3001U, 0x7fffU, 0x8000U, 0x8001U, 0xf000U, 0xffffU}) {
      const float value = std::bit_cast<float>((upper << 16) | lower);
      ASSERT_EQ(to_bf16(value).bits, encode(Dtype::bf16, value)) << upper << " " << lower;
      ASSERT_EQ(to_fp16(value).bits, encode(Dtype::f16, value)) << upper << " " << lower;
    }
  }
}

TEST(NumberFormats, StoreConvertsToTheTypeItFinds) {
  Bf16 b{};
  Fp16 h{};
  float f = 0;
  store(b, 1.5F);
  store(h, 1.5F);
  store(f, 1.5F);
  EXPECT_EQ(b.bits, 0x3fc0);
  EXPECT_EQ(h.bits, 0x3e00);
  EXPECT_EQ(f, 1.5F);
}

}  // namespace
}  // namespace attest::hip
