#include "backends/amx/shared_packs.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace attest::amx {
namespace {

TEST(SharedPacks, PackEachBlockOnceForAllThreads) {
  constexpr std::int64_t blocks = 50;
  BlockShape shape;
  shape.head_dim = shape.v_head_dim = 40;  // padded to 64, in memory that nobody zeroed
  SharedPacks packs(shape, blocks);
  std::vector<Bf16> row(40, 0x3f80);
  std::atomic<int> loads{0};
  std::atomic<int> wrong{0};
  const auto work = [&] {
    for (std::int64_t b = 0; b < blocks; ++b) {
      const KeyPack& pack = packs.get(b, [&](KeyBlock& keys) {
        ++loads;
        keys.last = static_cast<int>(b) + 1;
        for (int j = 0; j < keys.last; ++j) keys.k[j] = keys.v[j] = row.data();
      });
      if (pack.keys() != b + 1) ++wrong;
      // The last key's row and its padding, and the row behind it in the same tile.
      const Bf16* const k = pack.k_tile(pack.key_tiles() - 1) + b % 16 * 64;
      if (k[39] != 0x3f80 || k[40] != 0 || k[63] != 0) ++wrong;
      if (b % 16 < 15 && (k[64] != 0 || k[64 + 63] != 0)) ++wrong;
    }
  };
  {
    const std::jthread a(work);
    const std::jthread b(work);
    work();
  }
  EXPECT_EQ(loads, blocks);
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace attest::amx
