#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <sstream>
#include <vector>

#include "memory/kv_pool.hpp"
#include "memory/test_support.hpp"

namespace attest {
namespace {

using testing::HasSubstr;

TensorMeta view_of(const Problem& p) {
  return contiguous(p.model.kv_dtype,
                    {p.pool.num_pages, p.pool.page_size, p.model.num_kv_heads, p.model.head_dim});
}

TEST(KvPoolDamage, NoticesEveryChangedByte) {
  const Problem p = verify_problem({10}, 2);
  const TensorSource source(p, Recipe::normal, 1);
  const KvPool pool(source, PoolHalf::k, view_of(p), Stored::committed_and_new);
  const std::int64_t end = pool.span_bytes() + pool.before_bytes();
  for (std::int64_t at = -pool.before_bytes(); at < end; at += 37) {
    pool.base()[at] ^= std::byte{0x20};
    const auto damage = pool.damage({});
    ASSERT_NE(damage, std::nullopt) << at;
    EXPECT_THAT(damage.value(), HasSubstr("K pool: byte " + std::to_string(at) + " ("));
    pool.base()[at] ^= std::byte{0x20};
  }
  EXPECT_EQ(pool.damage({}), std::nullopt);
}

TEST(KvPoolDamage, SaysWhereAndWhatChanged) {
  const Problem p = verify_problem({10}, 2);
  const TensorSource source(p, Recipe::normal, 1);
  const KvPool pool(source, PoolHalf::v, view_of(p), Stored::committed_and_new);
  const std::int64_t slot = source.slots().slot(0, 4);
  std::byte& byte = pool.base()[(slot * 2 + 1) * 128 + 2 * 9];
  const auto before = std::to_integer<int>(byte);
  byte = std::byte{0xab};
  std::ostringstream wanted;
  wanted << "V pool: byte " << (slot * 2 + 1) * 128 + 18 << " (slot " << slot
         << " head 1 element 9) changed from 0x" << std::hex << before << " to 0xab";
  EXPECT_EQ(pool.damage({}).value(), wanted.str());
  pool.base()[-1] = std::byte{0};
  EXPECT_THAT(pool.damage({}).value(),
              HasSubstr("byte -1 (in front of the pool) changed from 0x7f"));
}

TEST(KvPoolDamage, ExcusesTheWrittenSlotsAlone) {
  const Problem p = verify_problem({40}, 2);
  const TensorSource source(p, Recipe::normal, 1);
  const KvPool pool(source, PoolHalf::k, view_of(p), Stored::committed);
  const std::vector<std::int64_t> written = {source.slots().slot(0, 41),
                                             source.slots().slot(0, 40)};
  for (const std::int64_t slot : written) std::memset(pool.base() + slot * 256, 0x11, 256);
  EXPECT_EQ(pool.damage(written), std::nullopt);
  EXPECT_NE(pool.damage({}), std::nullopt);
  EXPECT_NE(pool.damage(std::span(written).first(1)), std::nullopt);
  // One byte beside them.
  const std::int64_t beside = source.slots().slot(0, 41) + 1;
  pool.base()[beside * 256] ^= std::byte{1};
  EXPECT_THAT(pool.damage(written).value(), HasSubstr("slot " + std::to_string(beside)));
}

TEST(KvPoolDamage, ExcusesWrittenSlotsOfPagesNobodyHolds) {
  Problem p = verify_problem({10}, 2);
  p.pool.num_pages = 8;
  const TensorSource source(p, Recipe::normal, 1);
  const KvPool pool(source, PoolHalf::k, view_of(p), Stored::committed);
  const std::int64_t page = source.slots().pages[0][0];
  const std::int64_t slot = (page + 1) % 8 * 16 + 3;
  std::memset(pool.base() + slot * 256, 0x11, 256);
  const std::vector<std::int64_t> written = {slot};
  EXPECT_EQ(pool.damage(written), std::nullopt);
  EXPECT_NE(pool.damage({}), std::nullopt);
  pool.base()[(slot + 1) * 256] ^= std::byte{1};
  EXPECT_NE(pool.damage(written), std::nullopt);
}

TEST(KvPoolDamage, NoticesChangedBytesBetweenRows) {
  const Problem p = verify_problem({40}, 3);
  const TensorSource source(p, Recipe::normal, 1);
  TensorMeta meta = view_of(p);
  meta.strides = {16 * 200, 200, 70, 1};
  const KvPool pool(source, PoolHalf::k, meta, Stored::committed_and_new);
  const std::int64_t slot = source.slots().slot(0, 5);
  pool.base()[(slot * 200 + 64) * 2] ^= std::byte{1};
  EXPECT_THAT(pool.damage({}).value(), HasSubstr("between rows of page"));
  const std::vector<std::int64_t> written = {slot};
  EXPECT_NE(pool.damage(written), std::nullopt);
}

}  // namespace
}  // namespace attest
