#include "memory/host_tensors.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "memory/test_support.hpp"

namespace attest {
namespace {

using testing::HasSubstr;

constexpr std::array floating = {Dtype::f32, Dtype::f16, Dtype::bf16, Dtype::fp8_e4m3fn,
                                 Dtype::fp8_e4m3fnuz};

std::uint32_t element(const GuardedBuffer& buffer, Dtype dtype, std::int64_t at) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, buffer.data() + static_cast<std::size_t>(at) * size_bytes(dtype),
              size_bytes(dtype));
  return bits;
}

/// (rows, heads, dim) with 3 spare elements per head and 10 per row.
TensorMeta spaced(Dtype dtype, std::int64_t rows, std::int64_t heads, std::int64_t dim) {
  TensorMeta meta = contiguous(dtype, {rows, heads, dim});
  meta.strides = {heads * (dim + 3) + 10, dim + 3, 1};
  return meta;
}

TEST(HostTensors, HoldQDenseAndStrided) {
  const TensorSource source(verify_problem({40, 23}, 2), Recipe::normal, 1);
  const TensorMeta dense = contiguous(Dtype::bf16, {6, 8, 64});  // two padding rows
  const TensorMeta strided = spaced(Dtype::bf16, 6, 8, 64);
  const GuardedBuffer a = make_q(source, dense);
  const GuardedBuffer b = make_q(source, strided);
  EXPECT_EQ(a.size(), 6U * 8 * 64 * 2);
  EXPECT_EQ(b.size(), static_cast<std::size_t>(5 * strided.strides[0] + 7 * 67 + 64) * 2);
  std::vector<double> row(64);
  for (std::int64_t r = 0; r < 6; ++r) {
    for (std::int64_t h = 0; h < 8; ++h) {
      source.q_row(r, h, std::span(row));
      for (std::int64_t d = 0; d < 64; ++d) {
        const float value = decode(Dtype::bf16, element(a, Dtype::bf16, (r * 8 + h) * 64 + d));
        EXPECT_EQ(value, row[static_cast<std::size_t>(d)]);
        EXPECT_EQ(element(b, Dtype::bf16, r * strided.strides[0] + h * 67 + d),
                  element(a, Dtype::bf16, (r * 8 + h) * 64 + d));
      }
      if (r == 5 && h == 7) continue;  // the span ends with the last element
      EXPECT_EQ(element(b, Dtype::bf16, r * strided.strides[0] + h * 67 + 64), 0x7fc2U);
    }
  }
}

TEST(HostTensors, HoldTheNewTokensKeysAndValues) {
  const TensorSource source(verify_problem({40, 23}, 2), Recipe::recall, 1);
  const TensorMeta meta = contiguous(Dtype::bf16, {5, 2, 64});
  const GuardedBuffer k = make_new_kv(source, meta, false);
  const GuardedBuffer v = make_new_kv(source, meta, true);
  std::vector<std::byte> row(128);
  source.k_row({2, 24}, 1, row);
  EXPECT_EQ(std::memcmp(k.data() + (3 * 2 + 1) * 128, row.data(), 128), 0);
  source.v_row({1, 40}, 0, row);
  EXPECT_EQ(std::memcmp(v.data(), row.data(), 128), 0);
  for (std::int64_t d = 0; d < 128; ++d) {  // the padding row
    EXPECT_TRUE(std::isfinite(decode(Dtype::bf16, element(k, Dtype::bf16, 4 * 128 + d))));
  }
}

TEST(HostTensors, ShowExpandedHeadsOnce) {
  Problem p = verify_problem({40}, 2);
  p.model.num_kv_heads = 1;
  const TensorSource source(p, Recipe::normal, 1);
  TensorMeta meta = contiguous(Dtype::bf16, {2, 8, 64});
  meta.strides = {64, 0, 1};
  const GuardedBuffer k = make_new_kv(source, meta, false);
  EXPECT_EQ(k.size(), 2U * 64 * 2);
  std::vector<std::byte> row(128);
  source.k_row({1, 41}, 0, row);
  EXPECT_EQ(std::memcmp(k.data() + 128, row.data(), 128), 0);
  // Materialised copies of each head.
  const GuardedBuffer copies = make_new_kv(source, contiguous(Dtype::bf16, {2, 8, 64}), false);
  for (std::size_t h = 0; h < 8; ++h) {
    EXPECT_EQ(std::memcmp(copies.data() + (8 + h) * 128, row.data(), 128), 0);
  }
}

TEST(HostTensors, ShowEveryHeadOfARepeatedView) {
  const TensorSource source(verify_problem({40}, 2), Recipe::normal, 1);  // two kv heads
  const GuardedBuffer v = make_new_kv(source, contiguous(Dtype::bf16, {2, 8, 64}), true);
  std::vector<std::byte> row(128);
  for (std::size_t head = 0; head < 8; ++head) {
    source.v_row({1, 41}, static_cast<std::int64_t>(head / 4), row);
    EXPECT_EQ(std::memcmp(v.data() + (8 + head) * 128, row.data(), 128), 0) << head;
  }
}

TEST(HostTensors, HoldSinksInTheirOwnDtype) {
  Problem p = verify_problem({40}, 2);
  p.model.sinks = true;
  const TensorSource source(p, Recipe::normal, 1);
  for (const Dtype dtype : {Dtype::f32, Dtype::bf16}) {
    const GuardedBuffer sinks = make_sinks(source, contiguous(dtype, {8}));
    for (std::int64_t h = 0; h < 8; ++h) {
      EXPECT_EQ(decode(dtype, element(sinks, dtype, h)), source.sink(h));
    }
  }
}

TEST(HostTensors, AreSealedInputs) {
  const TensorSource source(verify_problem({40}, 2), Recipe::normal, 1);
  const GuardedBuffer q = make_q(source, contiguous(Dtype::bf16, {2, 8, 64}));
  EXPECT_EQ(q.damage(), std::nullopt);
  q.data()[100] ^= std::byte{1};
  EXPECT_THAT(q.damage().value(), HasSubstr("changed"));
}

TEST(HostTensors, StartAnOutputAsASentinelNan) {
  for (const Dtype dtype : floating) {
    const TensorMeta meta = spaced(dtype, 3, 2, 5);
    for (const int variant : {0, 1}) {
      const GuardedBuffer buffer = make_output(meta, variant);
      const Output out = read_output(buffer, meta, variant);
      EXPECT_EQ(out.rows, 3);
      EXPECT_EQ(out.heads, 2);
      EXPECT_EQ(out.dim, 5);
      EXPECT_EQ(out.values.size(), 30U);
      for (const std::uint8_t untouched : out.untouched) EXPECT_EQ(untouched, 1);
      if (dtype != Dtype::fp8_e4m3fnuz || variant == 0) {
        for (const float value : out.values) EXPECT_TRUE(std::isnan(value)) << name(dtype);
      }
    }
    EXPECT_NE(element(make_output(meta, 0), dtype, 0), element(make_output(meta, 1), dtype, 0));
  }
}

TEST(HostTensors, SentinelsAreNotPoison) {
  for (const Dtype dtype : {Dtype::f32, Dtype::f16, Dtype::bf16}) {
    for (const int variant : {0, 1}) {
      const std::uint32_t bits =
          element(make_output(contiguous(dtype, {1, 1, 1}), variant), dtype, 0);
      EXPECT_EQ(poisoned_region(dtype, bits), std::nullopt);
    }
  }
}

TEST(HostTensors, TellARowThatWasWrittenFromOneThatWasNot) {
  for (const Dtype dtype : floating) {
    const TensorMeta meta = spaced(dtype, 3, 2, 5);
    GuardedBuffer buffer = make_output(meta, 0);
    const std::uint32_t one = encode(dtype, 1.0F);
    const std::int64_t at = meta.strides[0] + meta.strides[1] + 4;  // row 1, head 1, last element
    std::memcpy(buffer.data() + static_cast<std::size_t>(at) * size_bytes(dtype), &one,
                size_bytes(dtype));
    const Output out = read_output(buffer, meta, 0);
    EXPECT_EQ(out.untouched, (std::vector<std::uint8_t>{1, 1, 1, 0, 1, 1}));
    EXPECT_EQ(out.values[out.index(1, 1, 4)], 1.0F);
    EXPECT_EQ(output_damage(buffer, meta, 0), std::nullopt);
  }
}

TEST(HostTensors, NoticeWritesBetweenOutputRows) {
  const TensorMeta meta = spaced(Dtype::bf16, 3, 2, 5);
  GuardedBuffer buffer = make_output(meta, 1);
  buffer.data()[5 * 2] ^= std::byte{1};
  EXPECT_EQ(output_damage(buffer, meta, 1).value(),
            "element 5 between rows of the output was overwritten");
  buffer.data()[5 * 2] ^= std::byte{1};
  EXPECT_EQ(output_damage(buffer, meta, 1), std::nullopt);
  buffer.data()[buffer.size()] ^= std::byte{1};
  EXPECT_THAT(output_damage(buffer, meta, 1).value(), HasSubstr("after the buffer"));
}

TEST(HostTensors, KeepNanPayloadsOfTheOutput) {
  const TensorMeta meta = contiguous(Dtype::bf16, {1, 1, 1});
  GuardedBuffer buffer = make_output(meta, 0);
  fill_poison(buffer.bytes(), Dtype::bf16, Poison::nan, Region::before_base);
  const Output out = read_output(buffer, meta, 0);
  EXPECT_EQ(poisoned_region(Dtype::bf16, encode(Dtype::bf16, out.values[0])), Region::before_base);
  EXPECT_EQ(out.untouched[0], 0);
}

TEST(HostTensors, RefuseOtherShapes) {
  const TensorSource source(verify_problem({40}, 2), Recipe::normal, 1);
  EXPECT_THROW(make_q(source, contiguous(Dtype::bf16, {2, 8, 32})), std::invalid_argument);
  EXPECT_THROW(make_q(source, contiguous(Dtype::f32, {2, 8, 64})), std::invalid_argument);
  EXPECT_THROW(make_q(source, contiguous(Dtype::bf16, {2, 512})), std::invalid_argument);
  EXPECT_THROW(make_output(contiguous(Dtype::int32, {2, 8, 64}), 0), std::invalid_argument);
  EXPECT_THROW(make_sinks(source, contiguous(Dtype::bf16, {2, 8})), std::invalid_argument);
}

TEST(HostTensors, MayBeEmpty) {
  const TensorSource source(verify_problem({40}, 2), Recipe::normal, 1);
  EXPECT_EQ(make_q(source, contiguous(Dtype::bf16, {0, 8, 64})).size(), 0U);
  const TensorMeta meta = contiguous(Dtype::bf16, {0, 8, 64});
  EXPECT_TRUE(read_output(make_output(meta, 0), meta, 0).values.empty());
}

}  // namespace
}  // namespace attest
