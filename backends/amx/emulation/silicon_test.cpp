// The emulation against the CPU's own AMX, bit for bit. Runs only where AMX exists.

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <random>

#include "backends/amx/emulation/engine.hpp"
#include "backends/amx/emulation/tile_file.hpp"
#include "backends/amx/tile.hpp"

namespace attest::amx {
namespace {

class Silicon : public testing::Test {
 protected:
  void SetUp() override {
    support_ = probe(true);
    if (!support_.native()) GTEST_SKIP() << "amx@native: " << support_.reason;
  }
  Support support_;
};

TileConfig random_config(std::mt19937& random) {
  TileConfig config;
  config.palette = 1;
  for (std::size_t t = 0; t < 8; ++t) {
    config.rows[t] = static_cast<std::uint8_t>(1 + random() % 16);
    config.colsb[t] = static_cast<std::uint16_t>(4 * (1 + random() % 16));
  }
  return config;
}

using Buffer = std::array<std::uint8_t, 1024>;

std::uint16_t draw_bf16(int data_class, std::mt19937& random) {
  const auto bits = static_cast<std::uint16_t>(random());
  const auto with_exponent = [&](unsigned low, unsigned high) {
    const unsigned exponent = low + static_cast<unsigned>(random()) % (high - low + 1);
    return static_cast<std::uint16_t>((bits & 0x807fU) | (exponent << 7));
  };
  switch (data_class) {
    case 0:
      return with_exponent(124, 129);  // normal data
    case 1:
      return with_exponent(1, 254);  // wide exponents
    case 2:
      return with_exponent(0, 0);  // denormals
    case 3:
      return random() % 8 == 0 ? static_cast<std::uint16_t>((bits & 0x8000U) | 0x7f80U)
                               : with_exponent(120, 130);  // infinities
    case 4:
      return random() % 8 == 0 ? static_cast<std::uint16_t>(bits | 0x7fc0U)
                               : with_exponent(120, 130);  // quiet NaN
    case 5:
      return random() % 8 == 0 ? static_cast<std::uint16_t>((bits & 0x803fU) | 0x7f80U | 1U)
                               : with_exponent(120, 130);  // signalling NaN
    case 6:
      return bits;  // raw bits
    case 7:
      return with_exponent(61, 66);  // products at the flush-to-zero boundary
    case 8:
      return with_exponent(190, 191);  // products that overflow
    case 9:
      return static_cast<std::uint16_t>((bits & 0x8001U) | 0x3f80U);  // cancellation
    default:
      return with_exponent(0, 5);  // denormals among the smallest normals
  }
}

void fill_bf16(Buffer& buffer, int data_class, std::mt19937& random) {
  for (std::size_t i = 0; i < buffer.size() / 2; ++i) {
    const std::uint16_t bits = draw_bf16(data_class, random);
    std::memcpy(buffer.data() + 2 * i, &bits, 2);
  }
}

void fill_bytes(Buffer& buffer, std::mt19937& random) {
  for (auto& byte : buffer) byte = static_cast<std::uint8_t>(random());
}

/// dst, src1, src2 in tiles 0, 1, 2 of full size.
struct Operands {
  Buffer dst, src1, src2;
};

Buffer native_dot(Dot kind, const Operands& in) {
  TileConfig config;
  config.palette = 1;
  for (std::size_t t = 0; t < 3; ++t) {
    config.rows[t] = 16;
    config.colsb[t] = 64;
  }
  Buffer out{};
  tile_loadconfig(&config);
  tile_load<0>(in.dst.data(), 64);
  tile_load<1>(in.src1.data(), 64);
  tile_load<2>(in.src2.data(), 64);
  switch (kind) {
    case Dot::bf16:
      tile_dot_bf16<0, 1, 2>();
      break;
    case Dot::fp16:
      __asm__ volatile("tdpfp16ps %%tmm2, %%tmm1, %%tmm0" ::);
      break;
    case Dot::ss:
      tile_dot_int8<0, 1, 2>();
      break;
    case Dot::su:
      __asm__ volatile("tdpbsud %%tmm2, %%tmm1, %%tmm0" ::);
      break;
    case Dot::us:
      __asm__ volatile("tdpbusd %%tmm2, %%tmm1, %%tmm0" ::);
      break;
    case Dot::uu:
      __asm__ volatile("tdpbuud %%tmm2, %%tmm1, %%tmm0" ::);
      break;
  }
  tile_store<0>(out.data(), 64);
  tile_release();
  return out;
}

Buffer emulated_dot(Dot kind, const Operands& in) {
  TileFile file;
  TileConfig config;
  config.palette = 1;
  for (std::size_t t = 0; t < 3; ++t) {
    config.rows[t] = 16;
    config.colsb[t] = 64;
  }
  Buffer out{};
  EXPECT_FALSE(load_config(file, config));
  const auto bytes = [](const Buffer& b) { return reinterpret_cast<const std::byte*>(b.data()); };
  EXPECT_FALSE(load(file, 0, bytes(in.dst), 64));
  EXPECT_FALSE(load(file, 1, bytes(in.src1), 64));
  EXPECT_FALSE(load(file, 2, bytes(in.src2), 64));
  EXPECT_FALSE(dot(file, kind, 0, 1, 2));
  EXPECT_FALSE(store(file, 0, reinterpret_cast<std::byte*>(out.data()), 64));
  return out;
}

TEST_F(Silicon, Bf16DotsAreBitIdenticalInElevenDataClasses) {
  std::mt19937 random(11);
  std::int64_t elements = 0;
  for (int data_class = 0; data_class < 11; ++data_class) {
    for (int n = 0; n < 800; ++n) {
      Operands in;
      fill_bf16(in.src1, data_class, random);
      fill_bf16(in.src2, data_class, random);
      if (n % 2 == 0) {
        fill_bf16(in.dst, data_class, random);
      } else {
        in.dst = {};
      }
      ASSERT_EQ(native_dot(Dot::bf16, in), emulated_dot(Dot::bf16, in))
          << "class " << data_class << " round " << n;
      elements += 256;
    }
  }
  RecordProperty("elements", static_cast<int>(elements));
}

TEST_F(Silicon, Int8DotsAreBitIdenticalInAllFourForms) {
  std::mt19937 random(12);
  for (const Dot kind : {Dot::ss, Dot::su, Dot::us, Dot::uu}) {
    for (int n = 0; n < 800; ++n) {
      Operands in;
      fill_bytes(in.src1, random);
      fill_bytes(in.src2, random);
      fill_bytes(in.dst, random);
      ASSERT_EQ(native_dot(kind, in), emulated_dot(kind, in)) << static_cast<int>(kind);
    }
  }
}

TEST_F(Silicon, Fp16DotsAreBitIdenticalWhereThereAreAny) {
  if (!support_.fp16) GTEST_SKIP() << "CPUID has no AMX-FP16";
  std::mt19937 random(13);
  for (int n = 0; n < 2000; ++n) {
    Operands in;
    fill_bytes(in.src1, random);
    fill_bytes(in.src2, random);
    in.dst = {};
    ASSERT_EQ(native_dot(Dot::fp16, in), emulated_dot(Dot::fp16, in));
  }
}

TEST_F(Silicon, LoadsStoresAndZeroingMoveTheSameBytesForRandomConfigurations) {
  std::mt19937 random(14);
  for (int n = 0; n < 2000; ++n) {
    TileConfig config = random_config(random);
    if (n % 4 == 0) config.start_row = static_cast<std::uint8_t>(random() % config.rows[5]);
    std::array<std::uint8_t, 4096> in;
    for (auto& byte : in) byte = static_cast<std::uint8_t>(random());
    const auto stride = static_cast<std::ptrdiff_t>(random() % 200);
    std::array<std::uint8_t, 1024> native{};
    std::array<std::uint8_t, 1024> emulated{};
    TileConfig native_config;
    TileConfig emulated_config;
    tile_loadconfig(&config);
    tile_load<5>(in.data(), stride);
    tile_store<5>(native.data(), 64);
    tile_storeconfig(&native_config);
    tile_release();
    TileFile file;
    ASSERT_FALSE(load_config(file, config));
    ASSERT_FALSE(load(file, 5, reinterpret_cast<const std::byte*>(in.data()), stride));
    ASSERT_FALSE(store(file, 5, reinterpret_cast<std::byte*>(emulated.data()), 64));
    store_config(file, emulated_config);
    ASSERT_EQ(native, emulated) << "round " << n << " start_row " << int{config.start_row};
    ASSERT_EQ(std::memcmp(&native_config, &emulated_config, 64), 0) << "round " << n;
  }
}

/// Whether the CPU raises on a configuration is seen in a child: the exception is a signal here.
bool native_refuses(const TileConfig& config) {
  const pid_t child = fork();
  if (child == 0) {
    tile_loadconfig(&config);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

TEST_F(Silicon, TheSameRandomConfigurationsAreRefused) {
  std::mt19937 random(15);
  int refused = 0;
  for (int n = 0; n < 1500; ++n) {
    TileConfig config = random_config(random);
    auto* const bytes = reinterpret_cast<std::uint8_t*>(&config);
    for (unsigned k = 0; k < random() % 3; ++k) {
      bytes[random() % 64] = static_cast<std::uint8_t>(random() % 70);
    }
    TileFile file;
    const bool emulated = static_cast<bool>(load_config(file, config));
    ASSERT_EQ(native_refuses(config), emulated) << "round " << n;
    refused += emulated;
  }
  EXPECT_GT(refused, 100) << "too few configurations were illegal to mean anything";
}

template <class Body>
bool native_raises(const TileConfig& config, Body&& body) {
  const pid_t child = fork();
  if (child == 0) {
    tile_loadconfig(&config);
    body();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

TEST_F(Silicon, AStartRowRaisesInTheSameInstructions) {
  std::array<std::byte, 1024> buffer{};
  std::array<std::byte, 1024> out{};
  for (std::uint8_t start = 0; start < 16; ++start) {
    TileConfig config;
    config.palette = 1;
    config.start_row = start;
    config.rows = {8, 8, 8};
    config.colsb = {32, 32, 32};
    TileFile fresh;
    ASSERT_FALSE(load_config(fresh, config));
    TileFile file = fresh;
    EXPECT_EQ(native_raises(config, [&] { tile_load<0>(buffer.data(), 32); }),
              static_cast<bool>(load(file, 0, buffer.data(), 32)))
        << "tileloadd, start_row " << int{start};
    file = fresh;
    EXPECT_EQ(native_raises(config, [&] { tile_store<0>(buffer.data(), 32); }),
              static_cast<bool>(store(file, 0, out.data(), 32)))
        << "tilestored, start_row " << int{start};
    file = fresh;
    EXPECT_EQ(native_raises(config, [] { tile_zero<0>(); }), static_cast<bool>(zero(file, 0)))
        << "tilezero, start_row " << int{start};
    file = fresh;
    EXPECT_EQ(native_raises(config, [] { tile_dot_bf16<0, 1, 2>(); }),
              static_cast<bool>(dot(file, Dot::bf16, 0, 1, 2)))
        << "tdpbf16ps, start_row " << int{start};
  }
}

TEST_F(Silicon, TheSameOperandShapesRaise) {
  std::mt19937 random(16);
  int raised = 0;
  for (int n = 0; n < 1500; ++n) {
    TileConfig config = random_config(random);
    if (n % 2 == 0) {  // make it fit, then maybe break one field
      config.rows[1] = config.rows[0];
      config.colsb[2] = config.colsb[0];
      config.rows[2] = static_cast<std::uint8_t>(config.colsb[1] / 4);
      if (n % 4 == 0) config.colsb[random() % 3] = static_cast<std::uint16_t>(1 + random() % 64);
    }
    if (n % 8 == 6) config.start_row = static_cast<std::uint8_t>(random() % 16);
    TileFile file;
    ASSERT_FALSE(load_config(file, config));
    const bool emulated = static_cast<bool>(dot(file, Dot::bf16, 0, 1, 2));
    ASSERT_EQ(native_raises(config, [] { tile_dot_bf16<0, 1, 2>(); }), emulated)
        << "round " << n << " start_row " << int{config.start_row};
    raised += emulated;
  }
  EXPECT_GT(raised, 100);
  EXPECT_LT(raised, 1400);
}

}  // namespace
}  // namespace attest::amx
