#include "backends/amx/emulation/engine.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <setjmp.h>
#include <signal.h>

#include <bit>
#include <cstring>
#include <thread>
#include <vector>

#include "backends/amx/tile.hpp"

namespace attest::amx {
namespace {

/// A 16x16x32 bf16 product whose config and inputs are written right before the instructions that
/// read them: wrappers that hide their memory operand from the compiler make it wrong or raise.
std::vector<float> product(int salt) {
  alignas(64) std::uint16_t a[16 * 32];
  alignas(64) std::uint16_t b[16 * 32];
  std::vector<float> out(256);
  TileConfig config{};
  config.palette = 1;
  for (std::size_t t = 0; t < 3; ++t) {
    config.rows[t] = 16;
    config.colsb[t] = 64;
  }
  for (int i = 0; i < 512; ++i) a[i] = static_cast<std::uint16_t>(0x3f80 + (i + salt) % 13);
  tile_loadconfig(&config);
  tile_load<1>(a, 64);
  // Reusing the buffer must not lose what the load above was to read.
  for (int i = 0; i < 512; ++i) b[i] = static_cast<std::uint16_t>(0x3f00 + (i + salt) % 7);
  for (int i = 0; i < 512; ++i) a[i] = 0;
  tile_load<2>(b, 64);
  tile_zero<0>();
  tile_dot_bf16<0, 1, 2>();
  tile_store<0>(out.data(), 64);
  tile_release();
  return out;
}

float bf16_value(int bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

std::vector<float> expected_product(int salt) {
  std::vector<float> out(256);
  for (int m = 0; m < 16; ++m) {
    for (int n = 0; n < 16; ++n) {
      float even = 0;
      float odd = 0;
      for (int k = 0; k < 16; ++k) {
        const int a = m * 32 + 2 * k;
        const int b = k * 32 + 2 * n;
        even += bf16_value(0x3f80 + (a + salt) % 13) * bf16_value(0x3f00 + (b + salt) % 7);
        odd += bf16_value(0x3f80 + (a + 1 + salt) % 13) * bf16_value(0x3f00 + (b + 1 + salt) % 7);
      }
      out[static_cast<std::size_t>(m * 16 + n)] = even + odd;
    }
  }
  return out;
}

/// The engine under test; native only where the machine has it.
class Engines : public testing::TestWithParam<Engine> {
 protected:
  void SetUp() override {
    const Support support = probe(GetParam() == Engine::native);
    if (GetParam() == Engine::native) {
      if (!support.native()) GTEST_SKIP() << "amx@native: " << support.reason;
    } else {
      if (support.permission) GTEST_SKIP() << "tile data is native in this process";
      install(GetParam());
    }
  }
  void TearDown() override { uninstall(); }
};

TEST_P(Engines, ComputeTheProductOfLocalArrays) {
  for (int salt = 0; salt < 5; ++salt) EXPECT_EQ(product(salt), expected_product(salt));
}

TEST_P(Engines, KeepTheTilesOfEachThreadApart) {
  std::vector<std::thread> threads;
  std::vector<int> wrong(8);
  for (std::size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&wrong, t] {
      const auto expected = expected_product(static_cast<int>(t));
      for (int n = 0; n < 50; ++n) wrong[t] += product(static_cast<int>(t)) != expected;
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_THAT(wrong, testing::Each(0));
}

INSTANTIATE_TEST_SUITE_P(All, Engines, testing::Values(Engine::trap, Engine::patch, Engine::native),
                         [](const auto& info) { return std::string(name(info.param)); });

class Emulation : public testing::TestWithParam<Engine> {
 protected:
  void SetUp() override {
    if (probe(false).cpuid) GTEST_SKIP() << "this CPU runs ldtilecfg itself";
    install(GetParam());
  }
  void TearDown() override { uninstall(); }
};
INSTANTIATE_TEST_SUITE_P(All, Emulation, testing::Values(Engine::trap, Engine::patch),
                         [](const auto& info) { return std::string(name(info.param)); });

TEST_P(Emulation, ReportsAnIllegalConfigurationWithItsPlace) {
  const auto raised = catch_raised([] {
    TileConfig config{};
    config.palette = 7;
    tile_loadconfig(&config);
  });
  ASSERT_TRUE(raised);
  EXPECT_EQ(raised->exception, Exception::gp);
  EXPECT_NE(raised->address, 0U);
  EXPECT_THAT(to_string(*raised), testing::HasSubstr("#GP in ldtilecfg at 0x"));
  EXPECT_THAT(to_string(*raised), testing::HasSubstr("palette id > 1"));
}

TEST_P(Emulation, CountsAndLints) {
  thread_counters() = {};
  product(1);
  const Counters counters = thread_counters();
  EXPECT_EQ(counters.configs, 1U);
  EXPECT_EQ(counters.loads, 2U);
  EXPECT_EQ(counters.bytes_loaded, 2048U);
  EXPECT_EQ(counters.dots, 1U);
  EXPECT_EQ(counters.stores, 1U);
  EXPECT_EQ(counters.zero_strides, 0U);
  EXPECT_EQ(counters.reads_before_write, 0U);
  std::byte buffer[64] = {};
  TileConfig config{};
  config.palette = 1;
  config.rows = {16, 16, 16};
  config.colsb = {64, 64, 64};
  tile_loadconfig(&config);
  tile_load<1>(buffer, 0);
  tile_dot_bf16<0, 1, 2>();
  EXPECT_EQ(thread_counters().zero_strides, 1U);
  EXPECT_EQ(thread_counters().reads_before_write, 1U) << "tile 2 was never written";
}

TEST_P(Emulation, WithoutAGuardARaiseIsPrintedAndFatal) {
  tile_release();
  EXPECT_DEATH(tile_zero<0>(), "attest: #UD in tilezero at 0x.*tiles are not configured");
}

TEST(EmulationPatch, ReplacesEachSiteOnceAndPutsItBack) {
  if (probe(false).cpuid) GTEST_SKIP() << "this CPU runs ldtilecfg itself";
  install(Engine::patch);
  product(1);
  const int sites = patched_sites();
  EXPECT_GE(sites, 6);
  product(2);
  EXPECT_EQ(patched_sites(), sites);
  uninstall();
  EXPECT_EQ(patched_sites(), 0);
  install(Engine::trap);
  EXPECT_EQ(product(3), expected_product(3));
  uninstall();
}

sigjmp_buf foreign_return;
void on_foreign(int) { siglongjmp(foreign_return, 1); }

TEST(EmulationTrap, HandsAForeignIllegalInstructionToThePreviousHandler) {
  struct sigaction mine{};
  struct sigaction before{};
  mine.sa_handler = on_foreign;
  sigaction(SIGILL, &mine, &before);
  install(Engine::trap);
  bool handled = false;
  if (sigsetjmp(foreign_return, 1) == 0) {
    __asm__ volatile("ud2");
  } else {
    handled = true;
  }
  uninstall();
  sigaction(SIGILL, &before, nullptr);
  EXPECT_TRUE(handled);
}

TEST(EmulationTrap, AForeignIllegalInstructionStillKills) {
  EXPECT_EXIT(
      {
        install(Engine::trap);
        __asm__ volatile("ud2");
      },
      testing::KilledBySignal(SIGILL), "");
}

TEST(Choice, AnUnknownWishIsRefusedByName) {
  EXPECT_THROW(
      {
        try {
          choose("fast");
        } catch (const std::invalid_argument& e) {
          EXPECT_THAT(e.what(), testing::HasSubstr("ATTEST_AMX=fast"));
          throw;
        }
      },
      std::invalid_argument);
  EXPECT_EQ(choose("trap").engine, Engine::trap);
  EXPECT_EQ(choose("off").engine, Engine::off);
}

}  // namespace
}  // namespace attest::amx
