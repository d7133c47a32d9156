#include <gtest/gtest.h>

#include <set>
#include <utility>

#include "backends/hip/hip_cases.hpp"
#include "backends/hip/kernels/launch_paged.hpp"

namespace attest::hip {
namespace {

/// Each element of a 16 x n product belongs to exactly one lane, and lanes that share a row differ
/// in their lowest bits only: the reductions across them rely on it.
template <class F>
void expect_every_element_once() {
  std::set<std::pair<int, int>> seen;
  for (int lane = 0; lane < F::lanes; ++lane) {
    for (int tile = 0; tile < 3; ++tile) {
      for (int i = 0; i < F::elements; ++i) {
        const int row = F::row(lane, i / F::columns_held);
        const int column = F::column(lane, tile, i % F::columns_held);
        EXPECT_TRUE(seen.emplace(row, column).second) << row << ' ' << column;
        EXPECT_LT(column, 3 * F::tile_columns);
        EXPECT_EQ(row, F::row(lane >> F::column_bits << F::column_bits, i / F::columns_held));
      }
    }
  }
  EXPECT_EQ(seen.size(), std::size_t{16} * 3 * F::tile_columns);
}

TEST(Fragments, GiveEveryElementToOneLane) {
  expect_every_element_once<MmaFragment>();
  expect_every_element_once<MfmaFragment>();
}

/// The kernel around the accumulators of MFMA, 64 lanes a group, with plain products.
void launch_in_mfma_layout(Stream stream, const PagedArgs& args, int) {
  launch_shape<Bf16, Shape<MfmaFragment, 128, 128, 1, 2, 32, 1>, PlantedFault::none>(stream, args);
}

class MfmaLayout : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(, MfmaLayout,
                         testing::Values("Plain", "Decode", "Window", "Softcap", "Sinks", "OddDim",
                                         "Recall", "Needle"));

TEST_P(MfmaLayout, AgreesWithThreeLoopsInDouble) {
  KernelVariant variant;
  variant.launch = launch_in_mfma_layout;
  const HipBackend backend("hip", Signature::unified, host_engine(64), variant);
  const ScalarCase c = hip_case(Signature::unified, GetParam());
  const TensorSource source(c.problem, c.recipe, 7);
  const Call call = call_of(c, source);
  for (const int splits : {1, 3}) {
    const RunResult got = backend.run(call, source, {.kv_splits = splits});
    EXPECT_EQ(difference(got, naive_attention(source), c.problem.model), "") << splits;
  }
}

}  // namespace
}  // namespace attest::hip
