#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <vector>

#include "backends/amx/emulation/engine.hpp"
#include "backends/amx/tile.hpp"
#include "memory/sanitizers.hpp"

// Real tiles read past the end of a buffer in silence. The emulation is ordinary code, so in a
// build with AddressSanitizer it says so, with the line of the kernel that asked.

namespace attest::amx {
namespace {

/// Loads 16 rows of 64 bytes from a buffer that has room for `rows`.
void load_rows(std::size_t rows, Engine engine) {
  install(engine);
  TileConfig config;
  config.palette = 1;
  config.rows.fill(16);
  config.colsb.fill(64);
  std::vector<std::byte> buffer(rows * 64);
  tile_loadconfig(&config);
  for (int again = 0; again < 2; ++again) tile_load<0>(buffer.data(), 64);
  tile_release();
}

class AsanDeathTest : public testing::TestWithParam<Engine> {
 protected:
  void SetUp() override {
    if (!with_address_sanitizer) GTEST_SKIP() << "this build has no AddressSanitizer";
    if (has_permission()) GTEST_SKIP() << "tile loads run on the CPU here";
  }
};

INSTANTIATE_TEST_SUITE_P(, AsanDeathTest, testing::Values(Engine::trap, Engine::patch),
                         [](const auto& info) { return std::string(name(info.param)); });

TEST_P(AsanDeathTest, FindsATileLoadPastTheEndAndNamesTheKernelsLine) {
  EXPECT_DEATH(load_rows(15, GetParam()), "heap-buffer-overflow.*READ.*asan_test.cpp");
}

TEST_P(AsanDeathTest, IsSilentAboutALoadThatFits) {
  EXPECT_EXIT((load_rows(16, GetParam()), std::_Exit(0)), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace attest::amx
