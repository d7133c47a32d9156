#include "contracts/byte_overlap.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

namespace attest {
namespace {

TensorMeta view(std::vector<std::int64_t> shape, std::vector<std::int64_t> strides,
                std::int64_t offset = 0) {
  TensorMeta t = contiguous(Dtype::bf16, std::move(shape));
  t.strides = std::move(strides);
  t.storage_offset = offset;
  t.storage = "s";
  return t;
}

/// Elements that the view names, by walking all of it.
std::vector<std::int64_t> elements(const TensorMeta& t) {
  std::vector<std::int64_t> at{t.storage_offset};
  for (std::size_t d = 0; d < t.shape.size(); ++d) {
    std::vector<std::int64_t> next;
    for (const std::int64_t base : at) {
      for (std::int64_t i = 0; i < t.shape[d]; ++i) next.push_back(base + i * t.strides[d]);
    }
    at = std::move(next);
  }
  return at;
}

TensorMeta drawn(std::mt19937& random) {
  const auto pick = [&](std::int64_t n) { return static_cast<std::int64_t>(random() % 1000) % n; };
  return view({1 + pick(3), pick(5), 1 + pick(4)}, {pick(30), pick(9), pick(3)}, pick(40));
}

TEST(ByteOverlap, AgreesWithAWalkOverEveryElement) {
  std::mt19937 random(1);
  int overlapping = 0, meeting = 0;
  for (int i = 0; i < 3000; ++i) {
    const TensorMeta a = drawn(random), b = drawn(random);
    const std::vector<std::int64_t> in_a = elements(a), in_b = elements(b);
    const std::set<std::int64_t> of_a(in_a.begin(), in_a.end());
    const bool twice = of_a.size() != in_a.size();
    bool common = false;
    for (const std::int64_t e : in_b) common |= of_a.contains(e);
    ASSERT_EQ(overlaps_itself(a), twice) << i;
    ASSERT_EQ(have_common_bytes(a, b), common) << i;
    ASSERT_EQ(
        spanned_elements(a),
        in_a.empty() ? 0 : *std::max_element(in_a.begin(), in_a.end()) - a.storage_offset + 1);
    overlapping += twice;
    meeting += common;
  }
  EXPECT_GT(std::min(overlapping, meeting), 300);
  EXPECT_LT(std::max(overlapping, meeting), 2700);
}

TEST(ByteOverlap, TellsInterleavedKeysAndValuesApart) {
  const TensorMeta k = view({500'000, 16, 2, 128}, {8192, 256, 128, 1});
  TensorMeta v = view({500'000, 16, 2, 128}, {8192, 256, 128, 1}, 4096);
  EXPECT_FALSE(share_bytes(k, v));
  v.storage_offset = 4095;
  EXPECT_TRUE(share_bytes(k, v));
  v.storage_offset = 8192 * 499'999LL;
  EXPECT_TRUE(share_bytes(k, v));
}

TEST(ByteOverlap, CountsBytesWhereElementsDifferInSize) {
  TensorMeta narrow = view({8}, {1}, 8);
  narrow.dtype = Dtype::uint8;  // bytes 8 .. 15
  EXPECT_TRUE(share_bytes(narrow, view({1}, {1}, 4)));
  EXPECT_FALSE(share_bytes(narrow, view({1}, {1}, 8)));
}

TEST(ByteOverlap, NeedsEqualLabels) {
  TensorMeta a = view({4}, {1}), b = a;
  EXPECT_TRUE(share_bytes(a, b));
  b.storage = "t";
  EXPECT_FALSE(share_bytes(a, b));
  a.storage = b.storage = "";
  EXPECT_FALSE(share_bytes(a, b));
}

TEST(ByteOverlap, SurvivesSizesNoTensorHas) {
  const std::int64_t huge = std::int64_t{1} << 40;
  const TensorMeta t = view({huge, huge, huge}, {huge, huge, 1});
  EXPECT_GT(spanned_elements(t), huge);
  EXPECT_TRUE(overlaps_itself(t));
}

}  // namespace
}  // namespace attest
