#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "backends/hip/hip_cases.hpp"

namespace attest::hip {
namespace {

using testing::IsEmpty;

constexpr auto unified = Signature::unified;

struct EdgeRun {
  explicit EdgeRun(ScalarCase c) : c(std::move(c)), source(this->c.problem, this->c.recipe, 5) {
    call = std::get<UnifiedCall>(call_of(this->c, source));
  }
  RunResult operator()(const RunOptions& options = {}) const {
    return host_backend(unified).run(call, source, options);
  }
  ScalarCase c;
  TensorSource source;
  UnifiedCall call;
};

bool row_is(const RunResult& result, std::int64_t row, float value) {
  const Output& out = result.out;
  const std::size_t begin = out.index(row, 0);
  const auto count = static_cast<std::size_t>(out.heads * out.dim);
  for (std::size_t i = begin; i < begin + count; ++i) {
    if (out.values[i] != value) return false;
  }
  return true;
}

TEST(HipEdges, RowsThatNoRequestHasStayUntouched) {
  EdgeRun run(hip_case(unified, "Plain"));
  const std::int64_t rows = run.call.q.size(0);
  for (TensorMeta* meta : {&run.call.q, &run.call.out}) {
    *meta = contiguous(meta->dtype, {rows + 9, meta->size(1), meta->size(2)});
  }
  for (const char* form : {"2d", "3d"}) {
    const RunResult result = run({.form = form});
    for (std::int64_t head = 0; head < result.out.heads; ++head) {
      for (std::int64_t row = rows; row < rows + 9; ++row) {
        EXPECT_EQ(result.out.untouched[static_cast<std::size_t>(row * result.out.heads + head)], 1);
      }
    }
    EXPECT_EQ(result.out.untouched[0], 0) << form;
  }
}

TEST(HipEdges, RowsBeforeTheFirstKeyAreZeroAndTheirNeighboursRight) {
  EdgeRun run(hip_case(unified, "Plain"));
  const RunResult right = run();
  run.call.seqused_k.values[0] = 2;  // four rows: the first two stand before key 0
  run.call.seqused_k.values[2] = 0;
  for (const char* form : {"2d", "3d"}) {
    const RunResult result = run({.form = form});
    EXPECT_FALSE(result.raised) << *result.raised;
    for (const std::int64_t row : {0, 1, 6, 7, 8}) {
      EXPECT_TRUE(row_is(result, row, 0)) << form << " row " << row;
      EXPECT_EQ(result.out.lse[static_cast<std::size_t>(row * result.out.heads)], -INFINITY);
    }
    EXPECT_FALSE(row_is(result, 2, 0));
    if (std::string(form) != "2d") continue;
    for (std::size_t i = right.out.index(4, 0); i < right.out.index(6, 0); ++i) {
      ASSERT_EQ(result.out.values[i], right.out.values[i]) << "request 1 changed";
    }
  }
}

// A masked part of the keys must not touch the maximum: then all weights underflow.
TEST(HipEdges, LogitsFarBelowZeroLoseNoRow) {
  ScalarCase c = hip_case(unified, "Plain");
  for (Request& r : c.problem.requests) r.committed = 0;
  c.problem.model.softmax_scale = 30;  // single keys: half the rows have a logit below -100
  for (const auto window : {std::optional<std::int64_t>(), std::optional<std::int64_t>(1)}) {
    c.problem.model.window = window;
    EdgeRun run(c);
    const NaiveOutput expected = naive_attention(run.source);
    EXPECT_LT(*std::min_element(expected.lse.begin(), expected.lse.end()), -150);
    for (const char* form : {"2d", "3d"}) {
      const RunResult result = run({.form = form});
      for (std::size_t i = 0; i < expected.out.size(); ++i) {
        ASSERT_NEAR(static_cast<double>(result.out.values[i]), expected.out[i],
                    0.02 * (expected.abs_v[i] + 1e-3))
            << form << ' ' << i;
      }
    }
  }
}

TEST(HipEdges, LogitsFarBeyondTheCapAreTheCap) {
  ScalarCase c = hip_case(unified, "Softcap");
  c.problem.model.softmax_scale = 300;
  EdgeRun run(c);
  const RunResult result = run();
  EXPECT_EQ(difference(result, naive_attention(run.source), c.problem.model), "");
}

TEST(HipEdges, PagesPast32BitsOfElementsAreFound) {
  for (const Signature signature : {Signature::unified, Signature::mla_decode}) {
    ScalarCase small = hip_case(signature, signature == Signature::unified ? "Plain" : "Verify");
    ScalarCase large = small;
    Pool& pool = large.problem.pool;
    const Model& m = large.problem.model;
    pool.placement = Placement::high;
    pool.num_pages = (std::int64_t{1} << 32) / (pool.page_size * m.num_kv_heads * m.head_dim) + 64;
    const TensorSource near(small.problem, small.recipe, 5);
    const TensorSource far(large.problem, large.recipe, 5);
    EXPECT_TRUE(same_bits(host_backend(signature).run(call_of(small, near), near, {}),
                          host_backend(signature).run(call_of(large, far), far, {})));
  }
}

TEST(HipEdges, ExpandedHeadsGiveTheValuesOfGroupedOnes) {
  EdgeRun run(hip_case(unified, "Plain"));
  const RunResult grouped = run({.form = "2d"});
  for (TensorMeta* meta : {&run.call.k, &run.call.v}) {
    ASSERT_EQ(meta->size(2), 2);
    meta->shape[2] = 1;  // one head for all: compare with itself expanded
  }
  const RunResult one = run({.form = "2d"});
  for (TensorMeta* meta : {&run.call.k, &run.call.v}) {
    meta->shape[2] = 8;
    meta->strides[2] = 0;
  }
  const RunResult expanded = run({.form = "2d"});
  EXPECT_FALSE(same_bits(grouped, one));
  ASSERT_EQ(one.out.values.size(), expanded.out.values.size());
  for (std::size_t i = 0; i < one.out.values.size(); ++i) {  // other blocks, other roundings
    ASSERT_NEAR(one.out.values[i], expanded.out.values[i], 0.02) << i;
  }
  EXPECT_EQ(expanded.counters.at("kv_bytes"), 8 * expanded.counters.at("kv_bytes_minimum"));
}

TEST(HipEdges, AnEmptyBatchWritesNothing) {
  EdgeRun run(hip_case(unified, "Plain"));
  run.call.seqused_k = int_array(Dtype::int64, {});
  run.call.cu_seqlens_q = int_array(Dtype::int32, {0});
  const RunResult result = run();
  EXPECT_FALSE(result.raised);
  EXPECT_THAT(result.damage, IsEmpty());
  for (const std::uint8_t untouched : result.out.untouched) EXPECT_EQ(untouched, 1);
}

}  // namespace
}  // namespace attest::hip
