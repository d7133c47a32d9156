#include "property_tests/case_stream.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends/registry.hpp"
#include "property_tests/lattice_screen.hpp"

namespace attest {
namespace {

using testing::HasSubstr;

RunPlan lattice_plan(std::string_view selector) {
  RunPlan plan;
  plan.backends = select_backends(selector);
  plan.profile = Profile::large_kv;
  plan.count = std::int64_t{1} << 20;
  plan.rules = RulesMode::report;
  plan.jobs = 1;
  plan.max_saved = 0;
  return plan;
}

TEST(CaseStream, OfTheLatticeEndsAndComesInShards) {
  RunPlan plan = lattice_plan("scalar.extend");
  const Backend& backend = *plan.backends.front();
  const std::size_t all = cases_of(plan, backend).size();
  EXPECT_EQ(static_cast<std::int64_t>(all), stream_length(plan, backend));
  plan.shard = {2, 3};
  EXPECT_EQ(cases_of(plan, backend).size(), all / 3 + (all % 3 > 1 ? 1 : 0));
}

TEST(CaseStream, NamesACellAndTheLineThatJudgesItAgain) {
  const RunPlan plan = lattice_plan("scalar.unified");
  const StreamCase cell = case_at(plan, *plan.backends.front(), 3);
  EXPECT_THAT(cell.name, HasSubstr("k below 2^31 bytes, page_ids, bf16"));
  EXPECT_EQ(cell.c.origin, "--profile large-kv --case 3");
  EXPECT_EQ(cell.run.form, "2d");
  EXPECT_TRUE(cell.c.aim);
}

TEST(CaseStream, LeavesOutDenseCellsThatDoNotFitAndSaysSo) {
  RunPlan plan = lattice_plan("scalar.unified");
  plan.memory = std::int64_t{5} << 30;  // 2^31 bytes of K and of V, and as much as fp8 has
  const Backend& backend = *plan.backends.front();
  const auto cases = cases_of(plan, backend);
  EXPECT_FALSE(cases.empty());
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const StreamCase cell = case_at(plan, backend, cases[i]);
    EXPECT_THAT(cell.name, HasSubstr("2^31 bytes, page_ids"));
    EXPECT_THAT(cell.name, HasSubstr("table int32"));
  }
  EXPECT_THAT(left_out(plan, backend), HasSubstr("dense cells left out, the largest takes 34,"));
  plan.memory = std::int64_t{64} << 30;
  EXPECT_EQ(left_out(plan, backend), "");
  plan.memory = 1 << 20;
  EXPECT_THAT(why_none(plan, backend), HasSubstr("no case of its part fits into 1048576 bytes"));
}

TEST(LatticeRun, CountsThePassesOfASideAndNamesWhatWasNotJudged) {
  RunPlan plan = lattice_plan("faulty-wrap-bytes_int32.extend@cpu");
  plan.count = 6;  // three sides of 2^31 bytes, int32 and int64 tables
  LatticeScreen lattice;
  const RunSummary summary = run_cases(plan, {&lattice});
  ASSERT_EQ(summary.tallies.size(), 1U);
  EXPECT_EQ(summary.tallies[0].failed(), 4);
  EXPECT_THAT(lattice.text(), HasSubstr("k, 2^31 bytes    2/2         0/2    0/2"));
  CaseResult unsupported{.name = "k above 2^32 bytes, view"};
  unsupported.judgement.backend = "scalar.extend@cpu";
  unsupported.judgement.verdict = Verdict::unsupported;
  unsupported.judgement.reason = "no such view";
  lattice.judged(unsupported, {});
  EXPECT_THAT(lattice.text(),
              HasSubstr("Required cells that were not judged:\n  scalar.extend@cpu  k above 2^32 "
                        "bytes, view  unsupported: no such view"));
}

TEST(Sizes, AreReadWithTheirUnit) {
  EXPECT_EQ(bytes_from_text("20GiB"), std::int64_t{20} << 30);
  EXPECT_EQ(bytes_from_text("800MiB"), std::int64_t{800} << 20);
  EXPECT_EQ(bytes_from_text("4096"), 4096);
  for (const char* const bad : {"", "GiB", "-1GiB", "0", "20GB", "20 GiB", "99999999999GiB"}) {
    EXPECT_EQ(bytes_from_text(bad), std::nullopt) << bad;
  }
}

TEST(Profiles, HaveTheNamesOfTheFlag) {
  for (const Profile profile : {Profile::generated, Profile::large_kv, Profile::long_context}) {
    EXPECT_EQ(profile_from_name(name(profile)), profile);
  }
  EXPECT_EQ(profile_from_name("large_kv"), std::nullopt);
}

}  // namespace
}  // namespace attest
