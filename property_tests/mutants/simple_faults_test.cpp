#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <string>
#include <vector>

#include "backends/registry.hpp"
#include "property_tests/diagnose.hpp"
#include "property_tests/generators.hpp"
#include "property_tests/judge.hpp"
#include "property_tests/mutants/explained.hpp"

namespace attest {
namespace {

bool is_hypothesis(std::string_view name) {
  const std::vector<Hypothesis> all = all_hypotheses();
  return std::ranges::find(all, name, &Hypothesis::id) != all.end();
}

/// What it loses depends on how many splits there are: where that is a page, a missing page is as
/// simple.
constexpr std::string_view not_simple = "split_remainder_lost";

/// A kernel for each row of the table whose mistake is one of the hypotheses: those are simpler
/// than what else computes the same.
std::vector<std::string> simple_faults() {
  std::vector<std::string> names;
  for (const Diagnosable& row : expected_diagnoses()) {
    if (row.part == not_simple || !is_hypothesis(row.names.substr(0, row.names.find(','))))
      continue;
    const auto mutants = all_mutants();
    const auto at = std::ranges::find_if(mutants, [&](const Mutant& mutant) {
      return &diagnosable(mutant) == &row && mutant.kind == MutantKind::kernel &&
             mutant.name.ends_with("@cpu");
    });
    if (at != mutants.end()) names.push_back(at->name);
  }
  return names;
}

class SimpleFaults : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(, SimpleFaults, testing::ValuesIn(simple_faults()), [](const auto& info) {
  std::string name = info.param;
  std::ranges::replace_if(name, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
});

/// What a person sees first: the first generated case that fails.
TEST_P(SimpleFaults, AreNamedFirstByTheirSimplestMistake) {
  const auto mutants = all_mutants();
  const Mutant& mutant = *std::ranges::find(mutants, GetParam(), &Mutant::name);
  const Backend& backend = *mutant.backend;
  const Capabilities& capabilities = backend.capabilities();
  JudgeOptions options;
  options.rules = RulesMode::report;
  options.reference_threads = 1;
  for (std::uint64_t i = 0; i < 600; ++i) {
    const Case c =
        generate(1, i, {.signature = capabilities.signature, .capabilities = &capabilities});
    options.diagnose = false;
    if (judge(c, backend, options).verdict != Verdict::mismatch) continue;
    options.diagnose = true;
    const std::string diagnosis = judge(c, backend, options).diagnosis;
    const DiagnosisNames named = names_in_diagnosis(diagnosis);
    ASSERT_FALSE(named.first.empty()) << "case " << i << ": " << diagnosis;
    EXPECT_TRUE(std::ranges::count(split_at_commas(diagnosable(mutant).names), named.first.front()))
        << "case " << i << ": " << diagnosis;
    return;
  }
  FAIL() << "no case fails";
}

}  // namespace
}  // namespace attest
