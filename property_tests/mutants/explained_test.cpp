#include "property_tests/mutants/explained.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "backends/registry.hpp"
#include "property_tests/diagnose.hpp"
#include "property_tests/misread/misreading.hpp"
#include "property_tests/mutants/campaign.hpp"

namespace attest {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

const Mutant& mutant_named(std::string_view name) {
  return *mutants_of("all", name, false).front();
}

Trial killed(std::string mutant, std::string diagnosis) {
  return {.mutant = std::move(mutant),
          .keys = 512,
          .outcome = Outcome::killed,
          .killed_by = "hard",
          .diagnosis = std::move(diagnosis)};
}

constexpr std::string_view stale = "faulty-stale_page.unified@cpu";
constexpr std::string_view right =
    "first_page_of_previous_request: ... (explains 3 rows within 0.10 of the bound; next: "
    "prefix_hole within 0.20)";

TEST(Diagnoses, NameWhatTheySayBestFirst) {
  EXPECT_THAT(names_in_diagnosis(right).first, ElementsAre("first_page_of_previous_request"));
  EXPECT_EQ(names_in_diagnosis(right).second, "prefix_hole");
  const DiagnosisNames tied = names_in_diagnosis(
      "window_off: x (explains 2 rows within 0.40 of the bound; the same here: window_one_long, "
      "prefix_hole; next: first_key_ignored within 0.41)");
  EXPECT_THAT(tied.first, ElementsAre("window_off", "window_one_long", "prefix_hole"));
  EXPECT_EQ(tied.second, "first_key_ignored");
  EXPECT_THAT(names_in_diagnosis("the kernel did what the metadata says (within 0.1 of the bound), "
                                 "and the metadata is wrong: row 0")
                  .first,
              ElementsAre("metadata"));
  EXPECT_THAT(names_in_diagnosis("row 3 holds the NaN of region \"x\", so it read").first,
              ElementsAre("stray_read"));
  EXPECT_THAT(names_in_diagnosis("unexplained: none of 60 known mistakes computes it").first,
              IsEmpty());
}

TEST(Diagnoses, AreRightFirstSecondOrNot) {
  const Mutant& mutant = mutant_named(stale);
  const auto of = [&](std::string_view text) {
    return named(mutant, killed(std::string(stale), std::string(text)));
  };
  EXPECT_EQ(of(right), Named::first);
  EXPECT_EQ(of("prefix_hole: x (explains 1 rows within 0.1 of the bound; next: "
               "first_page_of_previous_request within 0.2)"),
            Named::second);
  EXPECT_EQ(of("prefix_hole: x (explains 1 rows; the same here: first_page_of_previous_request)"),
            Named::first);
  EXPECT_EQ(of("prefix_hole: x (explains 1 rows)"), Named::wrongly);
  EXPECT_EQ(of("unexplained: none"), Named::unexplained);
  EXPECT_EQ(of(""), Named::nothing);
  const Mutant& no_name = mutant_named("faulty-p_truncated");
  EXPECT_EQ(named(no_name, killed(no_name.name, "prefix_hole: x")), Named::no_hypothesis);
  Trial survived = killed(std::string(stale), std::string(right));
  survived.outcome = Outcome::survived;
  EXPECT_EQ(named(mutant, survived), Named::nothing);
}

/// A row that means no mutant, or a name that nothing has, would count nothing for ever.
TEST(ExpectedDiagnoses, MeanMutantsAndNamesThatThereAre) {
  std::set<std::string_view> names = {"metadata", "unwritten_row", "wrapped_offset",
                                      "zeros_past_2_gib", "stray_read"};
  const std::vector<Hypothesis> all = all_hypotheses();
  for (const Hypothesis& one : all) names.insert(one.id);
  for (const Misreading& one : all_misreadings()) names.insert(one.id);
  for (const Diagnosable& row : expected_diagnoses()) {
    const auto mutants = all_mutants();
    const bool decides = std::any_of(mutants.begin(), mutants.end(), [&](const Mutant& mutant) {
      return &diagnosable(mutant) == &row;
    });
    EXPECT_TRUE(decides) << row.part;
    if (row.names.empty()) continue;
    for (const std::string_view name : split_at_commas(row.names)) {
      EXPECT_TRUE(names.contains(name)) << row.part << ": " << name;
    }
  }
  EXPECT_EQ(diagnosable(mutant_named("metadata:sinks_missing")).names, "metadata");
  EXPECT_EQ(diagnosable(mutant_named("metadata:softcap_missing")).subject, Subject::metadata);
}

TEST(ExplainedReport, CountsSharesOfThoseThatAHypothesisSays) {
  Detection run;
  run.trials = {killed(std::string(stale), std::string(right)),
                killed("faulty-causal_one_too_long.unified@cpu", "prefix_hole: x"),
                killed("faulty-window_tail_of_the_pool.unified@cpu", "unexplained: none"),
                killed("faulty-p_truncated.unified@cpu", "unexplained: none")};
  run.trials[0].shrunk_requests = 1;
  run.trials[0].shrunk_trials = 30;
  run.trials[0].shrunk_bytes = 900;
  run.trials[1].shrunk_requests = 2;
  run.trials[1].shrunk_trials = 50;
  run.trials[1].shrunk_bytes = 1200;
  const NamingScore addresses = naming_score(run, Subject::address);
  EXPECT_EQ(addresses.outputs, 2);
  EXPECT_EQ(addresses.with_hypothesis(), 1);
  EXPECT_EQ(addresses.first, 1);
  EXPECT_EQ(naming_score(run, Subject::mask).wrongly, 1);
  EXPECT_EQ(naming_score(run, Subject::arithmetic).no_hypothesis, 1);
  const std::string text = explained_markdown(run);
  EXPECT_THAT(text, HasSubstr("| addresses | 2 | 1 of 2 (50 %) | 1 of 1 (100 %) | 0 | 0 | 0 |"));
  EXPECT_THAT(text, HasSubstr("| **metadata, addresses, masks** | 3 | 2 of 3 (66 %) | 1 of 2"));
  EXPECT_THAT(text, HasSubstr("| `faulty-causal_one_too_long.unified@cpu` | 512 | "
                              "causal_one_long | wrongly | prefix_hole: x |"));
  EXPECT_THAT(text, Not(HasSubstr("`faulty-stale_page")));
  EXPECT_THAT(text, HasSubstr("median 1 request after 30 trials, over 2 mutants; the largest "
                              "fixture has 1200 bytes"));
  EXPECT_THAT(explained_text(run), HasSubstr("addresses: a hypothesis for 1 of 2 (50 %)"));
  EXPECT_THAT(explained_text(run),
              HasSubstr("\n  faulty-causal_one_too_long.unified@cpu at 512 keys: "
                        "named wrongly, causal_one_long says it; prefix_hole"));
  EXPECT_THAT(explained_text(run), HasSubstr("  faulty-p_truncated.unified@cpu at 512 keys: no "
                                             "hypothesis says it; unexplained: none"));
  Detection many = run;
  for (int i = 0; i < 20; ++i) many.trials.push_back(run.trials.front());
  EXPECT_THAT(explained_text(many), Not(HasSubstr("  faulty-stale_page"))) << "named first";
  EXPECT_THAT(explained_text(many), HasSubstr("  faulty-causal_one_too_long.unified@cpu at 512"));
  EXPECT_EQ(explained_text({}), "");
  EXPECT_EQ(explained_markdown({}), "");
  EXPECT_THAT(detection_json(run), HasSubstr("\"named\":\"wrongly\""));
}

/// The kernels themselves, not sentences about them.
TEST(Diagnoses, NameWhatAMutantDoes) {
  TrialPlan plan{.keys = 512, .most_cases = 60, .most_seconds = 30, .diagnose = true};
  for (const char* const name :
       {"faulty-causal_one_too_short.unified@cpu", "faulty-v_of_neighbour_head.extend@cpu",
        "faulty-stale_page.extend@cpu", "metadata:prefix_short_by_draft_count",
        "faulty-tree_mask_of_first_request", "faulty-context_is_total_length.extend@cpu",
        "faulty-merge_stops_at_the_first_row.extend@cpu",
        "faulty-group_from_the_kv_heads.decode@cpu", "faulty-page_size_taken_as_16.unified@cpu",
        "faulty-mask_bytes_reused.legacy_extend@cpu", "faulty-v_slot_one_further.unified@cpu"}) {
    const Mutant& mutant = mutant_named(name);
    const Trial trial = try_mutant(mutant, plan);
    EXPECT_EQ(named(mutant, trial), Named::first) << name << ": " << trial.diagnosis;
  }
}

}  // namespace
}  // namespace attest
