#include "contracts/storage_label.hpp"

#include <gtest/gtest.h>

#include "contracts/byte_overlap.hpp"

namespace attest {
namespace {

TEST(StorageLabel, IsANumberInEitherBase) {
  EXPECT_EQ(number_of_label("0x10"), 16U);
  EXPECT_EQ(number_of_label("0X1f"), 31U);
  EXPECT_EQ(number_of_label("0x0010"), 16U);
  EXPECT_EQ(number_of_label("16"), 16U);
  EXPECT_EQ(number_of_label("0xffffffffffffffff"), ~std::uint64_t{0});
  for (const char* const word : {"", "m1", "0x", "0xg", "1 ", " 1", "-1", "+1", "1.0", "k_pool",
                                 "0x1ffffffffffffffff", "99999999999999999999"}) {
    EXPECT_EQ(number_of_label(word), std::nullopt) << word;
  }
}

TEST(StorageLabel, IsAnAddressWhereSomethingCanLieThere) {
  EXPECT_TRUE(is_address("0x10"));
  EXPECT_TRUE(is_address("0X7F10"));
  EXPECT_TRUE(is_address("140234567890"));
  EXPECT_FALSE(is_address("7")) << "the seventh storage of a call";
  EXPECT_FALSE(is_address("m1"));
  EXPECT_FALSE(is_address(""));
}

TEST(StorageLabel, NamesOneStorageWhateverItsSpelling) {
  EXPECT_TRUE(same_storage("0x10", "0X10"));
  EXPECT_TRUE(same_storage("0x10", "16"));
  EXPECT_TRUE(same_storage("k_pool", "k_pool"));
  EXPECT_FALSE(same_storage("k_pool", "v_pool"));
  EXPECT_FALSE(same_storage("0x10", "0x11"));
  EXPECT_FALSE(same_storage("", "")) << "unknown";
  TensorMeta a = contiguous(Dtype::bf16, {4, 4}), b = a;
  a.storage = "0x7f10";
  b.storage = "0X7F10";
  EXPECT_TRUE(share_bytes(a, b));
  b.storage = "32529";
  EXPECT_FALSE(share_bytes(a, b));
}

}  // namespace
}  // namespace attest
