#include "backends/amx/emulation/decoder.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace attest::amx {
namespace {

/// An independent encoder of `tileloadd disp(base, index, scale), tmmN` from the SDM's tables.
std::vector<std::uint8_t> encode_load(int tile, int base, int index, int scale_log2,
                                      std::int32_t displacement, int displacement_bytes) {
  std::vector<std::uint8_t> code = {0xc4, 0, 0x7b, 0x4b};
  const int x = index >= 0 ? index >> 3 : 0;
  const int b = base >= 0 ? base >> 3 : 0;
  code[1] = static_cast<std::uint8_t>(0x80 | (x ? 0 : 0x40) | (b ? 0 : 0x20) | 2);
  const int mod = base < 0 || displacement_bytes == 0 ? 0 : displacement_bytes == 1 ? 1 : 2;
  code.push_back(static_cast<std::uint8_t>((mod << 6) | (tile << 3) | 4));
  const int sib_index = index < 0 ? 4 : index & 7;
  const int sib_base = base < 0 ? 5 : base & 7;
  code.push_back(static_cast<std::uint8_t>((scale_log2 << 6) | (sib_index << 3) | sib_base));
  const int bytes = base < 0 ? 4 : displacement_bytes;
  for (int i = 0; i < bytes; ++i) {
    code.push_back(static_cast<std::uint8_t>(displacement >> (8 * i)));
  }
  return code;
}

std::optional<Instruction> decode_padded(std::vector<std::uint8_t> code) {
  code.resize(32, 0x90);
  return decode(code.data());
}

TEST(Decoder, EveryAddressingFormOfATileLoadIsUnderstood) {
  Registers registers;
  for (std::size_t n = 0; n < 16; ++n) registers.general[n] = 0x1000000 * (n + 1) + n;
  int forms = 0;
  for (int base = -1; base < 16; ++base) {
    for (int index = -1; index < 16; ++index) {
      if (index == 4) continue;  // rsp is no index
      for (int scale = 0; scale < 4; ++scale) {
        for (const int bytes : {0, 1, 4}) {
          // mod 0 with rbp or r13 as base means "no base": assemblers add a zero displacement
          // there.
          if (bytes == 0 && base >= 0 && (base & 7) == 5) continue;
          const std::int32_t displacement = bytes == 0 && base >= 0 ? 0
                                            : bytes == 1            ? -77
                                                                    : 0x12345;
          const auto code = encode_load(3, base, index, scale, displacement, bytes);
          const auto got = decode_padded(code);
          ASSERT_TRUE(got) << base << ' ' << index << ' ' << scale << ' ' << bytes;
          EXPECT_EQ(got->mnemonic, "tileloadd");
          EXPECT_EQ(got->tile, 3);
          EXPECT_EQ(got->length, static_cast<int>(code.size()));
          const std::uint64_t base_value =
              base < 0 ? 0 : registers.general[static_cast<std::size_t>(base)];
          EXPECT_EQ(address_of(*got, registers),
                    base_value + static_cast<std::uint64_t>(std::int64_t{displacement}));
          const std::uint64_t index_value =
              index < 0 ? 0 : registers.general[static_cast<std::size_t>(index)];
          EXPECT_EQ(stride_of(*got, registers), static_cast<std::int64_t>(index_value << scale));
          ++forms;
        }
      }
    }
  }
  EXPECT_GT(forms, 2000);
}

TEST(Decoder, EveryRegisterFormOfADotIsUnderstood) {
  const std::pair<std::pair<int, int>, std::pair<Dot, const char*>> forms[] = {
      {{0x5c, 2}, {Dot::bf16, "tdpbf16ps"}}, {{0x5c, 3}, {Dot::fp16, "tdpfp16ps"}},
      {{0x5e, 3}, {Dot::ss, "tdpbssd"}},     {{0x5e, 2}, {Dot::su, "tdpbsud"}},
      {{0x5e, 1}, {Dot::us, "tdpbusd"}},     {{0x5e, 0}, {Dot::uu, "tdpbuud"}},
  };
  for (const auto& [encoding, meaning] : forms) {
    for (int dst = 0; dst < 8; ++dst) {
      for (int src1 = 0; src1 < 8; ++src1) {
        for (int src2 = 0; src2 < 16; ++src2) {
          const auto got = decode_padded(
              {0xc4, 0xe2, static_cast<std::uint8_t>(((src2 ^ 15) << 3) | encoding.second),
               static_cast<std::uint8_t>(encoding.first),
               static_cast<std::uint8_t>(0xc0 | (dst << 3) | src1)});
          ASSERT_EQ(got.has_value(), src2 < 8);
          if (!got) continue;
          EXPECT_EQ(got->mnemonic, meaning.second);
          EXPECT_EQ(got->kind, meaning.first);
          EXPECT_EQ(got->tile, dst);
          EXPECT_EQ(got->src1, src1);
          EXPECT_EQ(got->src2, src2);
          EXPECT_EQ(got->length, 5);
        }
      }
    }
  }
}

TEST(Decoder, ConfigInstructionsTakeAnyAddress) {
  Registers registers;
  registers.rip = 0x400000;
  registers.general[0] = 0x1000;
  const auto plain = decode_padded({0xc4, 0xe2, 0x78, 0x49, 0x00});  // ldtilecfg (rax)
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->op, Op::ldtilecfg);
  EXPECT_EQ(address_of(*plain, registers), 0x1000U);
  const auto relative = decode_padded({0xc4, 0xe2, 0x79, 0x49, 0x05, 0x10, 0, 0, 0});
  ASSERT_TRUE(relative);
  EXPECT_EQ(relative->op, Op::sttilecfg);
  EXPECT_EQ(address_of(*relative, registers), 0x400000U + 9 + 0x10);
  const auto from_fs = decode_padded({0x64, 0xc4, 0xe2, 0x78, 0x49, 0x00});
  ASSERT_TRUE(from_fs);
  registers.fs_base = 0x7000000;
  EXPECT_EQ(address_of(*from_fs, registers), 0x7001000U);
  EXPECT_EQ(from_fs->length, 6);
}

TEST(Decoder, InstructionsThatAreNotAmxAreRefused) {
  const std::vector<std::uint8_t> others[] = {
      {0x0f, 0x0b},                          // ud2
      {0xc4, 0xe2, 0x7d, 0x18, 0x00},        // vbroadcastss
      {0xc4, 0xe2, 0xfb, 0x4b, 0x04, 0x08},  // W = 1
      {0xc4, 0xe2, 0x7f, 0x4b, 0x04, 0x08},  // L = 1
      {0xc4, 0x62, 0x7b, 0x4b, 0x04, 0x08},  // tile 8
      {0xc4, 0xe2, 0x7b, 0x4b, 0x00},        // tileloadd without SIB
      {0xc4, 0xe2, 0x73, 0x4b, 0x04, 0x08},  // vvvv used
      {0xc4, 0xe2, 0x78, 0x49, 0xc1},        // not quite tilerelease
      {0xc5, 0xf8, 0x77},                    // vzeroupper
      {0x62, 0xf2, 0x7d, 0x48, 0x49, 0x00},  // EVEX
      {0x66, 0xc4, 0xe2, 0x78, 0x49, 0x00},  // 66 before VEX raises #UD
  };
  for (const auto& code : others) EXPECT_FALSE(decode_padded(code)) << int{code[3 % code.size()]};
  EXPECT_TRUE(decode_padded({0xc4, 0xe2, 0x78, 0x49, 0xc0})) << "tilerelease itself";
}

}  // namespace
}  // namespace attest::amx
