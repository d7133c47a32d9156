#include <gtest/gtest.h>

#include <cmath>

#include "backends/registry.hpp"
#include "backends/scalar/naive_attention.hpp"
#include "backends/scalar/scalar_cases.hpp"

namespace attest {
namespace {

const Backend& scalar(Signature signature) {
  const std::string wanted = "scalar." + std::string(name(signature)) + "@cpu";
  return *select_backends(wanted).front();
}

/// Relative rounding of P and of the output, with room for the float32 sums.
double tolerance(const Model& m) {
  const Dtype p_dtype = is_fp8(m.q_dtype) ? Dtype::bf16 : m.q_dtype;
  return 1.2 * unit_roundoff(p_dtype) + 1.2 * unit_roundoff(m.out_dtype) + 1e-5;
}

void expect_near(const RunResult& got, const NaiveOutput& expected, const Model& m) {
  ASSERT_FALSE(got.raised) << got.raised.value_or("");
  ASSERT_EQ(got.out.values.size(), expected.out.size());
  double worst = 0;
  for (std::size_t i = 0; i < expected.out.size(); ++i) {
    const double bound = tolerance(m) * (expected.abs_v[i] + std::fabs(expected.out[i])) + 1e-30;
    const double error = std::fabs(static_cast<double>(got.out.values[i]) - expected.out[i]);
    ASSERT_LE(error, bound) << "element " << i << ": got " << got.out.values[i] << ", expected "
                            << expected.out[i];
    worst = std::max(worst, error / bound);
  }
  EXPECT_GT(worst, 0) << "bit-equal to double: nothing was rounded, nothing was compared";
  for (std::size_t i = 0; i < expected.lse.size(); ++i) {
    ASSERT_NEAR(static_cast<double>(got.out.lse[i]), expected.lse[i],
                2e-5 * (1 + std::fabs(expected.lse[i])))
        << i;
  }
}

class Scalar : public testing::TestWithParam<ScalarCase> {};

TEST_P(Scalar, AgreesWithThreeLoopsInDouble) {
  const ScalarCase& c = GetParam();
  const TensorSource source(c.problem, c.recipe, 7);
  const RunResult got = scalar(c.signature).run(call_of(c, source), source, {});
  expect_near(got, naive_attention(source), c.problem.model);
  EXPECT_TRUE(got.damage.empty()) << got.damage.front();
  EXPECT_TRUE(got.lints.empty()) << got.lints.front();
}

TEST_P(Scalar, AgreesWhenTheKeysAreSplit) {
  const ScalarCase& c = GetParam();
  const TensorSource source(c.problem, c.recipe, 8);
  const RunResult got = scalar(c.signature).run(call_of(c, source), source, {.kv_splits = 3});
  expect_near(got, naive_attention(source), c.problem.model);
  EXPECT_EQ(got.form, "split 3");
  EXPECT_EQ(got.counters.at("launches"), 2);
}

TEST_P(Scalar, GivesTheSameBitsForEveryThreadCountAndPoison) {
  const ScalarCase& c = GetParam();
  const TensorSource nan(c.problem, c.recipe, 9);
  const TensorSource loud(c.problem, c.recipe, 9, {.poison = Poison::loud});
  const Call call = call_of(c, nan);
  const Backend& backend = scalar(c.signature);
  const RunResult one = backend.run(call, nan, {.threads = 1});
  EXPECT_EQ(one.out.values, backend.run(call, nan, {.threads = 4}).out.values);
  EXPECT_EQ(one.out.values, backend.run(call, loud, {.sentinel = 1, .threads = 1}).out.values);
}

std::string case_name(const testing::TestParamInfo<ScalarCase>& info) {
  return std::string(name(info.param.signature)) + info.param.name;
}
INSTANTIATE_TEST_SUITE_P(Cases, Scalar, testing::ValuesIn(scalar_cases()), case_name);

}  // namespace
}  // namespace attest
