#include "backends/hip/runtime/emulator.hpp"

#include <gtest/gtest.h>

namespace attest::hip {
namespace {

constexpr std::string_view plain =
    "55d0-55d1 r-xp 00000000 08:01 12 /usr/bin/attest\n"
    "7f00-7f01 r-xp 00000000 08:01 13 /usr/lib/libamdhip64.so.7.1.0\n";

TEST(Emulator, IsNotSeenWhereItsLibraryIsNotLoaded) {
  EXPECT_EQ(emulator_in(plain, ""), std::nullopt);
  EXPECT_EQ(emulator_in("", "/usr/lib/libasan.so.8"), std::nullopt);
  EXPECT_EQ(emulator_here(), std::nullopt) << "these tests run on the machine itself";
}

TEST(Emulator, IsSeenAmongTheFilesOfTheProcessWithItsVersion) {
  const std::string maps =
      std::string(plain) + "7f10-7f11 r-xp 00000000 08:01 14 /opt/rocm/lib/librocjitsu.so.0.2.0\n";
  const auto found = emulator_in(maps, "");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->label("gfx950"), "gfx950 (rocjitsu 0.2.0, emulated)");
}

TEST(Emulator, IsSeenInThePreloadAndNeverPassesForHardware) {
  const auto found = emulator_in(plain, "/opt/lib/librocjitsu.so");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->label("gfx942"), "gfx942 (rocjitsu of unknown version, emulated)");
  EXPECT_EQ(emulator_in(plain, "librocjitsu.so.10 other.so")->version, "10");
}

}  // namespace
}  // namespace attest::hip
