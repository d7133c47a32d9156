#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends/hip/hip_cases.hpp"

namespace attest::hip {
namespace {

using testing::IsEmpty;

std::string case_name(const testing::TestParamInfo<ScalarCase>& info) {
  return std::string(attest::name(info.param.signature)) + info.param.name;
}

class HipKernel : public testing::TestWithParam<ScalarCase> {
 protected:
  HipKernel()
      : source_(GetParam().problem, GetParam().recipe, 7), call_(call_of(GetParam(), source_)) {}

  RunResult run(const RunOptions& options, int wave = 32) const {
    return host_backend(GetParam().signature, wave).run(call_, source_, options);
  }
  const Model& model() const { return GetParam().problem.model; }

  TensorSource source_;
  Call call_;
};
INSTANTIATE_TEST_SUITE_P(Cases, HipKernel, testing::ValuesIn(hip_cases()), case_name);

TEST_P(HipKernel, AgreesWithThreeLoopsInDouble) {
  const RunResult got = run({});
  EXPECT_EQ(difference(got, naive_attention(source_), model()), "");
  EXPECT_THAT(got.damage, IsEmpty());
  EXPECT_THAT(got.lints, IsEmpty());
}

TEST_P(HipKernel, AgreesWhenTheKeysAreSplit) {
  const RunResult two = run({.kv_splits = 2});
  EXPECT_EQ(two.form, "split 2");
  EXPECT_EQ(two.counters.at("launches"), 2);
  EXPECT_EQ(difference(two, naive_attention(source_), model()), "");
  // More splits than tiles: some have no keys.
  const RunResult many = run({.kv_splits = 37});
  EXPECT_EQ(difference(many, naive_attention(source_), model()), "");
  EXPECT_THAT(many.damage, IsEmpty());
}

TEST_P(HipKernel, GivesTheSameBitsInEveryThreadOrderAndWaveSize) {
  for (const char* form : {"2d", "3d"}) {
    const RunResult forward = run({.form = form, .threads = 1});
    for (const char* order : {"reverse", "random:3", "random:4"}) {
      EXPECT_TRUE(same_bits(forward, run({.form = form, .threads = 1, .thread_order = order})))
          << form << ' ' << order;
    }
    EXPECT_TRUE(same_bits(forward, run({.form = form, .threads = 2}, 64))) << form;
  }
}

// Whatever lies past a request's keys, in other pages or in the output before the launch.
TEST_P(HipKernel, ReadsOnlyTheKeysOfItsRows) {
  const ScalarCase& c = GetParam();
  const TensorSource loud(c.problem, c.recipe, 7, {.poison = Poison::loud, .nan_in_v_tail = true});
  for (const char* form : {"2d", "3d"}) {
    const RunResult nan = run({.form = form});
    const Backend& backend = host_backend(c.signature);
    EXPECT_TRUE(same_bits(nan, backend.run(call_, loud, {.sentinel = 1, .form = form}))) << form;
  }
}

UnifiedCall changed(const Call& call, void (*change)(UnifiedCall&)) {
  UnifiedCall copy = std::get<UnifiedCall>(call);
  change(copy);
  return copy;
}

TEST_P(HipKernel, TakesIndicesOfEitherWidth) {
  if (GetParam().signature != Signature::unified) GTEST_SKIP() << "only unified has both widths";
  const Call other = changed(call_, [](UnifiedCall& c) {
    c.seqused_k.meta.dtype = Dtype::int32;
    c.block_table.meta.dtype = Dtype::int64;
  });
  EXPECT_TRUE(same_bits(run({}), host_backend(Signature::unified).run(other, source_, {})));
}

}  // namespace
}  // namespace attest::hip
