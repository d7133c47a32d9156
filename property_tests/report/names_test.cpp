#include "property_tests/report/names.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "backends/registry.hpp"
#include "contracts/rules.hpp"
#include "contracts/step_rules.hpp"
#include "fixtures/fixture.hpp"
#include "memory/poison.hpp"
#include "property_tests/case_features.hpp"
#include "property_tests/diagnose.hpp"
#include "property_tests/feature_words.hpp"
#include "property_tests/generators.hpp"
#include "property_tests/judge.hpp"
#include "property_tests/metadata_faults.hpp"
#include "property_tests/misread/misreading.hpp"
#include "property_tests/null_oracles.hpp"
#include "property_tests/relations.hpp"
#include "property_tests/report/explain.hpp"
#include "property_tests/report/tally.hpp"
#include "property_tests/step_faults.hpp"
#include "reference/oracles.hpp"

namespace attest {
namespace {

using testing::HasSubstr;

bool explained(std::string_view name) {
  return explain_text(name, Console::silent()).has_value() && explain_json(name).size() > 5;
}

std::set<std::string> kinds_of(std::string_view name) {
  std::set<std::string> kinds;
  for (const KnownName& known : names_called(name)) kinds.insert(std::string(known.kind));
  return kinds;
}

/// Every list that a report takes names from.
TEST(Names, OfEveryListCanBeExplained) {
  std::vector<std::string> names;
  for (const Rule& rule : all_rules()) names.emplace_back(rule.id);
  for (const StepRule& rule : step_rules()) names.emplace_back(rule.id);
  for (const MetadataFault& fault : all_metadata_faults()) names.emplace_back(fault.id);
  for (const StepFault& fault : all_step_faults()) names.emplace_back(fault.id);
  for (const Oracle& oracle : all_oracles()) names.emplace_back(oracle.name);
  for (const NullOracle& oracle : all_null_oracles()) names.emplace_back(oracle.id);
  for (const Hypothesis& one : all_hypotheses()) names.emplace_back(one.id);
  for (const CaseFeature& feature : all_case_features()) names.emplace_back(feature.name);
  for (const std::string& word : feature_words()) names.push_back(word);
  for (const Relation& relation : all_relations()) names.emplace_back(relation.id);
  for (const Verdict verdict : all_verdicts) names.emplace_back(name(verdict));
  for (const Severity one : {Severity::wrong, Severity::fault, Severity::slow, Severity::policy}) {
    names.emplace_back(name(one));
  }
  for (const Region region : all_regions) names.emplace_back(name(region));
  for (const Signature signature : all_signatures) names.emplace_back(name(signature));
  for (int mode = 0; mode <= static_cast<int>(Mode::draft_decode); ++mode) {
    names.emplace_back(name(static_cast<Mode>(mode)));
  }
  for (int recipe = 0; recipe <= static_cast<int>(Recipe::sparse_int); ++recipe) {
    names.emplace_back(name(static_cast<Recipe>(recipe)));
  }
  for (const Backend* const backend : all_backends()) {
    names.emplace_back(backend->name());
    names.push_back("engine " + split_backend_name(backend->name()).engine);
  }
  for (int path = 0; path <= static_cast<int>(Path::replay); ++path) {
    names.emplace_back(name(static_cast<Path>(path)));
  }
  for (const Evidence evidence : {Evidence::real, Evidence::modelled}) {
    names.emplace_back(name(evidence));
  }
  for (const std::string& one : names) EXPECT_TRUE(explained(one)) << one;
}

/// What generated cases and judgements say, wherever it comes from.
TEST(Names, OfGeneratedCasesAndTheirOraclesCanBeExplained) {
  std::set<std::string> names;
  for (std::uint64_t i = 0; i < 300; ++i) {
    for (const Signature signature : generated_signatures) {
      const Case c = generate(3, i, {.signature = signature});
      for (const std::string& word : features_of(c)) names.insert(word);
    }
  }
  for (const char* const backend : {"scalar.unified@cpu", "faulty-causal_one_too_long.unified@cpu",
                                    "faulty-reads_past_kv_len.unified@cpu"}) {
    for (std::uint64_t i = 0; i < 12; ++i) {
      const Case c = generate(3, i, {.signature = Signature::unified, .max_kv = 40});
      const Judgement judgement =
          judge(c, *select_backends(backend).front(), {.reference_threads = 1});
      names.insert(std::string(name(judgement.verdict)));
      for (const OracleResult& oracle : judgement.oracles) names.insert(oracle.oracle);
      for (const auto& [counter, value] : judgement.counters) names.insert(counter);
      const DiagnosisNames diagnosed = names_in_diagnosis(judgement.diagnosis);
      names.insert(diagnosed.first.begin(), diagnosed.first.end());
    }
  }
  EXPECT_TRUE(names.contains("poison"));
  EXPECT_TRUE(names.contains("damage"));
  EXPECT_TRUE(names.contains("page 16"));
  for (const std::string& one : names) EXPECT_TRUE(explained(one)) << one;
}

/// The tables of attest run and of attest mutants --class metadata.
TEST(Names, OfColumnsCanBeExplained) {
  for (const char* const column :
       {"found", "known", "error/bound", "z/limit", "noted", "launched", "missed", "needless"}) {
    EXPECT_EQ(kinds_of(column), std::set<std::string>{"column"}) << column;
  }
  EXPECT_EQ(kinds_of("split 16"), std::set<std::string>{"form"});
}

/// Words of blocks, sentences and tables that are no row of a table of the program.
TEST(Names, OfLinesAndSentencesCanBeExplained) {
  for (const char* const word :
       {"eager",           "capture",       "replay",       "cpu",     "enforced",
        "reported",        "false failure", "later",        "later 1", "later 2",
        "before",          "coverage",      "perf",         "unsure",  "doubtful",
        "doubtful label",  "form",          "form 2d",      "form 3d", "form split 4",
        "form work lists", "recipe needle", "engine patch", "shrunk",  "saved",
        "again",           "ran on",        "sampled",      "lint",    "problem"}) {
    EXPECT_TRUE(explained(word)) << word;
  }
  EXPECT_EQ(kinds_of("form 2d"), std::set<std::string>{"form"});
}

TEST(Names, OfArgumentsSayWhichKernelsHaveThemAndWhichRules) {
  const auto text = explain_text("seqused_k", Console::silent());
  ASSERT_TRUE(text);
  EXPECT_THAT(*text, HasSubstr("of unified; rules about it alone: seqused_k."));
  EXPECT_THAT(*explain_text("seq_lens", Console::silent()),
              HasSubstr("of extend, decode, vllm_cpu"));
}

TEST(Names, AreExplainedInEverySenseThatTheyHave) {
  EXPECT_EQ(kinds_of("poison"), (std::set<std::string>{"oracle", "relation"}));
  EXPECT_TRUE(kinds_of("softcap_missing").contains("hypothesis"));
  EXPECT_TRUE(kinds_of("softcap_missing").contains("kernel fault"));
  const auto text = explain_text("softcap_missing", Console::silent());
  ASSERT_TRUE(text);
  EXPECT_THAT(*text, HasSubstr("metadata fault"));
  EXPECT_THAT(*text, HasSubstr("the softcap is missing"));
  EXPECT_EQ(kinds_of("step.scale_agrees"), std::set<std::string>{"step rule"});
  EXPECT_THAT(*explain_text("step.scale_agrees", Console::silent()), HasSubstr("sglang#38754"));
}

TEST(Names, AreFoundWithWhatReportsPutAroundThem) {
  EXPECT_EQ(kinds_of("page 48"), std::set<std::string>{"feature"});
  EXPECT_EQ(kinds_of("fp8_e4m3fn kv"), std::set<std::string>{"feature"});
  EXPECT_EQ(kinds_of("faulty-causal_one_too_long.unified@cpu"),
            (std::set<std::string>{"kernel fault", "backend"}));
  EXPECT_EQ(kinds_of("faulty-causal_one_too_long"), std::set<std::string>{"kernel fault"});
  EXPECT_TRUE(explained("metadata:sinks_missing"));
  EXPECT_TRUE(explained("rule seqused_k.is_int64"));
  EXPECT_TRUE(explained("relation batch_permutation"));
  EXPECT_TRUE(names_called("page x").empty());
  EXPECT_TRUE(names_called("bananas kv").empty());
}

/// What a diagnosis says, and what of a kernel to look at.
TEST(Names, OfADiagnosisSayWhatToLookAt) {
  for (const Hypothesis& one : all_hypotheses()) {
    EXPECT_FALSE(one.look.empty()) << one.id;
    EXPECT_LE(one.look.size(), 100U) << one.id;
  }
  for (const Misreading& one : all_misreadings()) EXPECT_FALSE(one.look.empty()) << one.id;
  for (const char* const word :
       {"metadata", "unwritten_row", "wrapped_offset", "zeros_past_2_gib", "stray_read"}) {
    const std::vector<KnownName> known = names_called(word);
    EXPECT_TRUE(std::ranges::any_of(known, [](const KnownName& one) {
      return one.kind == "diagnosis" && !one.look.empty();
    })) << word;
  }
  EXPECT_THAT(*explain_text("window_off", Console::silent()),
              HasSubstr("\n  look at    whether the window reaches the kernel"));
  EXPECT_THAT(*explain_text("window_more_by_window_begin", Console::silent()),
              HasSubstr("\n  look at    the bounds of the loop over keys"));
  EXPECT_THAT(explain_json("window_off"), HasSubstr("\"look_at\""));
}

TEST(Names, OfTheWordsBetweenThemCanBeExplained) {
  for (const char* const word :
       {"the same here", "next", "within", "explains N rows", "explains 4 rows", "explains 1 row",
        "bound", "x the limit", "error/bound", "z", "gain", "hard", "lse", "unexplained"}) {
    EXPECT_TRUE(explained(word)) << word;
  }
}

TEST(Names, SayWhatTheyAre) {
  const std::string text = names_text(Console::silent());
  for (const KnownName& known : known_names()) {
    EXPECT_FALSE(known.name.empty() || known.says.empty() || known.kind.empty()) << known.name;
    EXPECT_NE(text.find(known.name), std::string::npos) << known.name;
  }
}

}  // namespace
}  // namespace attest
