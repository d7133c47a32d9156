#include "property_tests/known_failures.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends/registry.hpp"
#include "fixtures/fixture_error.hpp"
#include "property_tests/case_stream.hpp"
#include "property_tests/feature_words.hpp"
#include "property_tests/generators.hpp"

namespace attest {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

std::string entry(std::string_view more, std::string_view name = "n") {
  return "{\"name\": \"" + std::string(name) +
         "\", \"issue\": \"https://example.org/1\", \"expires\": \"2027-01-31\"" +
         std::string(more) + "}";
}

std::string list(const std::string& entries) {
  return R"({"schema": 1, "known": [)" + entries + "]}";
}

CaseResult result_of(Verdict verdict, std::string oracle = "hard") {
  CaseResult result;
  result.name = "case 3";
  result.problem = "decode 1 req 4:4 D80 window 17, recipe normal";
  result.features = {"decode", "window"};
  result.judgement.backend = "scalar.unified@cpu";
  result.judgement.verdict = verdict;
  result.judgement.oracles = {{.oracle = std::move(oracle), .passed = verdict == Verdict::pass}};
  return result;
}

TEST(KnownFailures, CoverFailuresThatFitInEveryWordThatIsGiven) {
  KnownFailures known(list(entry(R"(, "backend": "scalar", "problem": "window 17",
      "features": ["window", "decode"], "kind": "hard")")),
                      "k.json");
  const KnownFailure* const met = known.meet(result_of(Verdict::mismatch));
  ASSERT_NE(met, nullptr);
  EXPECT_EQ(met->name, "n");
  EXPECT_EQ(known.meet(result_of(Verdict::mismatch, "lse")), nullptr);
  CaseResult other = result_of(Verdict::mismatch);
  other.judgement.backend = "scalars.unified@cpu";
  EXPECT_EQ(known.meet(other), nullptr);
  other = result_of(Verdict::mismatch);
  other.problem = "decode 1 req 4:4 D80 window 18";
  EXPECT_EQ(known.meet(other), nullptr);
  other = result_of(Verdict::mismatch);
  other.features = {"window"};
  EXPECT_EQ(known.meet(other), nullptr);
}

TEST(KnownFailures, AboutABackendThatIsNearlyOneAreMisspelt) {
  const std::vector<std::string_view> backends = {"scalar.unified@cpu", "hip.unified@host"};
  for (const char* const wrong : {"scalr", "scalar.unifed", "scalar.unified@gpu"}) {
    const KnownFailures known(list(entry(R"(, "backend": ")" + std::string(wrong) + '"')), "k");
    EXPECT_THAT(known.misspelt(backends), ElementsAre(HasSubstr("did you mean scalar"))) << wrong;
  }
  // Of this program, or of a machine with another kernel.
  for (const char* const right : {"scalar", "hip.unified", "aiter.unified", "my_kernel"}) {
    const KnownFailures known(list(entry(R"(, "backend": ")" + std::string(right) + '"')), "k");
    EXPECT_THAT(known.misspelt(backends), IsEmpty()) << right;
  }
}

TEST(KnownFailures, ComplainWhenWhatTheySayPassesInEveryCase) {
  const std::string text = list(entry(R"(, "backend": "scalar.unified", "kind": "hard")"));
  KnownFailures passes(text, "k.json");
  EXPECT_THAT(passes.contradicted(), IsEmpty());  // nothing was judged
  EXPECT_EQ(passes.meet(result_of(Verdict::unsupported)), nullptr);
  EXPECT_THAT(passes.contradicted(), IsEmpty());
  EXPECT_EQ(passes.meet(result_of(Verdict::pass)), nullptr);
  EXPECT_EQ(passes.meet(result_of(Verdict::pass)), nullptr);
  EXPECT_THAT(passes.contradicted(),
              ElementsAre("known failure \"n\" no longer fails, in 2 cases that it is about: drop "
                          "it, or see https://example.org/1"));
  KnownFailures fails(text, "k.json");
  EXPECT_EQ(fails.meet(result_of(Verdict::pass)), nullptr);
  EXPECT_NE(fails.meet(result_of(Verdict::mismatch)), nullptr);
  EXPECT_THAT(fails.contradicted(), IsEmpty());
}

TEST(KnownFailures, SayWhatElseACaseFailsBy) {
  KnownFailures known(list(entry(R"(, "backend": "scalar.unified", "kind": "hard")")), "k.json");
  for (const char* const oracle : {"lse", "z", "lse"}) {
    EXPECT_EQ(known.meet(result_of(Verdict::mismatch, oracle)), nullptr);
  }
  EXPECT_EQ(known.meet(result_of(Verdict::pass)), nullptr);
  EXPECT_THAT(
      known.contradicted(),
      ElementsAre("known failure \"n\" does not fail by hard: of 4 cases that it is about, 2 "
                  "fail by lse and 1 fails by z; correct its kind, or see "
                  "https://example.org/1"));
  EXPECT_NE(known.meet(result_of(Verdict::mismatch)), nullptr);
  EXPECT_THAT(known.contradicted(), IsEmpty());
}

TEST(KnownFailures, ExpireAfterTheirLastDay) {
  const KnownFailures known(list(entry(R"(, "backend": "scalar")")), "k.json");
  EXPECT_THAT(known.expired("2027-01-31"), IsEmpty());
  EXPECT_THAT(known.expired("2027-02-01"),
              ElementsAre("known failure \"n\" expired on 2027-01-31: https://example.org/1"));
  EXPECT_THAT(today(), SizeIs(10));
  EXPECT_GT(today(), "2026-01-01");
}

TEST(KnownFailures, RefuseAListThatHidesEverythingOrSaysNothing) {
  const auto error_of = [](const std::string& text) -> std::string {
    try {
      const KnownFailures known(text, "k.json");
    } catch (const FixtureError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(error_of(list(entry(""))), HasSubstr("k.json: /known/0"));
  EXPECT_THAT(error_of(list(entry(R"(, "backend": "")"))), HasSubstr("backend is empty"));
  EXPECT_THAT(error_of(list(entry(R"(, "backend": "a", "window": 4)"))), HasSubstr("window"));
  EXPECT_THAT(error_of(list(entry(R"(, "backend": "a")") + "," + entry(R"(, "backend": "b")"))),
              HasSubstr("stands twice"));
  // A word that no case and no failure has would hide nothing and never be contradicted.
  const std::string kind = error_of(list(entry(R"(, "backend": "a", "kind": "hrad")")));
  EXPECT_THAT(kind, HasSubstr("k.json: /known/0/kind: \"hrad\", expected one of damage, poison, "
                              "rows, hard, z, gain, lse, mismatch, crashed, hung, or a rule"));
  EXPECT_THAT(kind, HasSubstr("did you mean hard"));
  const std::string rule =
      error_of(list(entry(R"(, "backend": "a", "kind": "seqused_k.counts_this_step_tokens")")));
  EXPECT_THAT(rule, HasSubstr("did you mean seqused_k.counts_this_steps_tokens"));
  EXPECT_THAT(error_of(list(entry(R"(, "backend": "a", "features": ["sinks", "windows"])"))),
              HasSubstr("/known/0/features/1: \"windows\", expected one of decode, "));
  for (const char* const day : {"2027-02-30", "soon", "2027-1-31", "2027-13-01"}) {
    EXPECT_THAT(error_of(list(std::string(R"({"name": "n", "issue": "i", "backend": "b",
        "expires": ")") + day +
                              "\"}")),
                HasSubstr("is no day"))
        << day;
  }
  EXPECT_THAT(error_of(R"({"schema": 2, "known": []})"), HasSubstr("schema 1"));
  EXPECT_THROW(KnownFailures::from_file("no/such/file"), FixtureError);
}

TEST(KnownFailures, MayNameEveryWordThatCasesHave) {
  for (const char* const signature : {"scalar.unified", "scalar.decode", "scalar.mla_decode"}) {
    const Backend& backend = *select_backends(signature).front();
    for (std::uint64_t i = 0; i < 60; ++i) {
      const Capabilities& can = backend.capabilities();
      const Case c = generate(1, i, {.signature = can.signature, .capabilities = &can});
      for (const std::string& word : features_of(c)) EXPECT_TRUE(is_feature_word(word)) << word;
    }
    RunPlan plan;
    plan.profile = Profile::large_kv;
    for (std::int64_t i = 0; i < stream_length(plan, backend); ++i) {
      for (const std::string& word : case_at(plan, backend, i, 0).features) {
        EXPECT_TRUE(is_feature_word(word)) << word;
      }
    }
  }
  EXPECT_FALSE(is_feature_word("page"));
  EXPECT_FALSE(is_feature_word("page N"));
}

}  // namespace
}  // namespace attest
