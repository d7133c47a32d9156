#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "backends/registry.hpp"
#include "backends/scalar/scalar_cases.hpp"
#include "contracts/work_lists.hpp"

namespace attest {
namespace {

using testing::HasSubstr;

const ScalarCase& verify() {
  static const std::vector<ScalarCase> cases = scalar_cases();
  return *std::ranges::find_if(cases, [](const ScalarCase& c) {
    return c.signature == Signature::mla_decode && c.name == "Verify";
  });
}

RunResult run(const std::function<void(MlaDecodeCall&)>& change) {
  const ScalarCase& c = verify();
  const TensorSource source(c.problem, c.recipe, 5);
  Call call = call_of(c, source);
  change(std::get<MlaDecodeCall>(call));
  return select_backends("scalar.mla_decode").front()->run(call, source, {});
}

RunResult run_by_lists(
    std::int64_t parts, const std::function<void(MlaDecodeCall&)>& change = [](MlaDecodeCall&) {}) {
  return run([&](MlaDecodeCall& call) {
    call = with_work_lists(call, parts);
    change(call);
  });
}

/// Largest difference of two outputs; NaN where one has a NaN.
float difference(const RunResult& a, const RunResult& b) {
  float largest = 0;
  for (std::size_t i = 0; i < a.out.values.size(); ++i) {
    const float d = std::abs(a.out.values[i] - b.out.values[i]);
    largest = std::isnan(d) || std::isnan(largest) ? NAN : std::max(largest, d);
  }
  return largest;
}

TEST(MlaWork, OnOnePartGivesTheBitsOfALaunchWithoutLists) {
  const RunResult lists = run_by_lists(1);
  EXPECT_EQ(lists.form, "work lists");
  EXPECT_EQ(lists.out.values, run([](MlaDecodeCall&) {}).out.values);
}

TEST(MlaWork, OnManyPartsGivesTheSameUpToTheMerging) {
  const RunResult plain = run([](MlaDecodeCall&) {});
  for (const std::int64_t parts : {3, 9, 40}) {
    EXPECT_LT(difference(run_by_lists(parts), plain), 0.02F) << parts;
  }
}

TEST(MlaWork, ReadsNanWhereNobodyWroteAPartialResult) {
  const RunResult r = run_by_lists(9, [](MlaDecodeCall& c) {
    c.work_info_set->values[1] = 60;  // the first work's partial goes elsewhere
  });
  EXPECT_TRUE(std::isnan(r.out.values[0]));
}

TEST(MlaWork, LeavesRowsAloneThatNoWorkHas) {
  const RunResult r = run_by_lists(1, [](MlaDecodeCall& c) { c.work_indptr->values = {0, 1}; });
  EXPECT_EQ(r.out.untouched[r.out.index(0, 0) / 512], 0);
  const std::int64_t second = verify().problem.requests[0].new_tokens;
  EXPECT_EQ(r.out.untouched[r.out.index(second, 0) / 512], 1);
}

TEST(MlaWork, HasNoRowsWithoutQueryOffsets) {
  const RunResult r =
      run_by_lists(2, [](MlaDecodeCall& c) { c.qo_indptr = int_array(Dtype::int32, {}); });
  EXPECT_EQ(r.out.untouched[0], 1);
}

TEST(MlaWork, IsRefusedWhereItsListsCannotBeRead) {
  const ScalarCase& c = verify();
  const TensorSource source(c.problem, c.recipe, 5);
  const auto reason = [&](const std::function<void(MlaDecodeCall&)>& change) {
    Call call = call_of(c, source);
    auto& mla = std::get<MlaDecodeCall>(call);
    mla = with_work_lists(mla, 2);
    change(mla);
    return select_backends("scalar.mla_decode").front()->supports(call).reason;
  };
  EXPECT_EQ(reason([](MlaDecodeCall&) {}), "");
  EXPECT_THAT(reason([](MlaDecodeCall& m) { m.reduce_indptr.reset(); }),
              HasSubstr("reduce_indptr is absent"));
  EXPECT_THAT(reason([](MlaDecodeCall& m) { m.page_size = 16; }),
              HasSubstr("pages of one token, page_size is 16"));
}

}  // namespace
}  // namespace attest
