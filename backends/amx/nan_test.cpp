#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "backends/amx/engine_lease.hpp"
#include "backends/amx/kernels.hpp"
#include "contracts/dtype.hpp"

// No legal case holds NaN in a key that a row sees, so what a kernel does with one is shown here,
// on the kernel itself.

namespace attest::amx {
namespace {

constexpr std::int64_t dim = 64;
constexpr std::int64_t longer = 64;  ///< keys of request 0: a whole block, so all V scratch is used
constexpr std::int64_t shorter = 33;  ///< of request 1: 31 rows of scratch are not its own

/// Two requests of one decode step, one head, keys in order.
struct Step {
  std::vector<Bf16> q, k, v, out;
  std::vector<std::int64_t> table, rows = {0, 1}, lengths = {longer, shorter};

  Step() : q(2 * dim), k((longer + shorter) * dim), v(k.size()), out(2 * dim) {
    const auto bits = [](std::size_t i) {
      return static_cast<Bf16>(encode(Dtype::bf16, static_cast<float>(i * 37 % 19) / 16.0F - 0.5F));
    };
    for (std::size_t i = 0; i < q.size(); ++i) q[i] = bits(i + 3);
    for (std::size_t i = 0; i < k.size(); ++i) k[i] = bits(5 * i + 1);
    for (std::size_t i = 0; i < v.size(); ++i) v[i] = bits(7 * i + 2);
    table.resize(2 * longer);
    for (std::int64_t t = 0; t < longer; ++t) table[static_cast<std::size_t>(t)] = t;
    for (std::int64_t t = 0; t < shorter; ++t) {
      table[static_cast<std::size_t>(longer + t)] = longer + t;
    }
  }

  /// Whether any output of `request` is NaN.
  bool nan_in(std::size_t request, Defect defect) {
    const EngineLease lease(process_engine().engine);
    DecodeArguments args;
    args.batch = 2;
    args.shape = {dim, dim, 0.125F, 0, defect};
    args.q = {q.data(), dim, dim};
    args.k_pool = {k.data(), dim, dim};
    args.v_pool = {v.data(), dim, dim};
    args.out = out.data();
    args.req_to_token = {table.data(), true};
    args.req_to_token_columns = longer;
    args.req_pool_indices = rows.data();
    args.seq_lens = lengths.data();
    const KernelOutcome outcome = decode(args);
    EXPECT_FALSE(outcome.raised) << outcome.raised.value_or("");
    for (std::size_t d = 0; d < dim; ++d) {
      if (std::isnan(attest::decode(Dtype::bf16, out[request * dim + d]))) return true;
    }
    return false;
  }
};

constexpr Bf16 nan = 0x7fc1;

class Nan : public testing::Test {
 protected:
  void SetUp() override {
    if (process_engine().engine == Engine::off) GTEST_SKIP() << process_engine().reason;
  }
};

TEST_F(Nan, InOneRequestsValuesStaysInItsRows) {
  Step step;
  for (std::size_t i = 0; i < longer * dim; ++i) step.v[i] = nan;
  EXPECT_TRUE(step.nan_in(0, Defect::none));
  EXPECT_FALSE(step.nan_in(1, Defect::none));
  EXPECT_TRUE(step.nan_in(1, Defect::scratch_of_the_last_item));
}

TEST_F(Nan, InAKeyShowsInEveryRowThatSeesIt) {
  Step step;
  step.k[3 * dim] = nan;
  EXPECT_TRUE(step.nan_in(0, Defect::none));
  EXPECT_FALSE(step.nan_in(1, Defect::none));
  EXPECT_FALSE(step.nan_in(0, Defect::nan_key_dropped));
}

TEST_F(Nan, IsNotThereWithoutACause) {
  Step step;
  for (const Defect defect :
       {Defect::none, Defect::scratch_of_the_last_item, Defect::nan_key_dropped}) {
    EXPECT_FALSE(step.nan_in(0, defect));
    EXPECT_FALSE(step.nan_in(1, defect));
  }
}

}  // namespace
}  // namespace attest::amx
