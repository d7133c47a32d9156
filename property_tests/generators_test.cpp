#include "property_tests/generators.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "backends/registry.hpp"
#include "contracts/rules.hpp"
#include "property_tests/null_oracles.hpp"
#include "property_tests/power.hpp"

namespace attest {
namespace {

class Generators : public testing::TestWithParam<std::string> {
 protected:
  GeneratorOptions options() const {
    GeneratorOptions options;
    options.signature = *signature_from_name(GetParam());
    return options;
  }
  /// The same Problems, without the cost of looking for data that gives them power.
  GeneratorOptions problems_only() const {
    GeneratorOptions quick = options();
    quick.recipe = Recipe::normal;
    return quick;
  }
  Capabilities capabilities() const { return {.signature = *signature_from_name(GetParam())}; }
};

std::vector<std::string> signature_names() {
  std::vector<std::string> names;
  for (const Signature signature : generated_signatures) names.emplace_back(name(signature));
  return names;
}

INSTANTIATE_TEST_SUITE_P(, Generators, testing::ValuesIn(signature_names()),
                         [](const auto& info) { return info.param; });

constexpr std::uint64_t many = 3000;

TEST_P(Generators, AreAPureFunctionOfSeedAndIndex) {
  for (std::uint64_t i = 0; i < 50; ++i) {
    const Case a = generate(7, i, options());
    const Case b = generate(7, i, options());
    EXPECT_EQ(a.problem, b.problem);
    EXPECT_EQ(a.seed, b.seed);
    EXPECT_EQ(a.recipe, b.recipe);
    EXPECT_NE(a.problem, generate(8, i, options()).problem);
    EXPECT_NE(a.problem, generate(7, i + 1, options()).problem);
  }
}

TEST_P(Generators, DrawOnlyLegalProblemsThatLowerToCleanCalls) {
  for (std::uint64_t i = 0; i < many; ++i) {
    const Case c = generate(1, i, problems_only());
    ASSERT_EQ(problem_error(c.problem), std::nullopt) << c.origin << ' ' << describe(c.problem);
    const SlotMap slots = make_slot_map(c.problem);
    const auto call = call_of(c, slots);
    ASSERT_TRUE(std::holds_alternative<Call>(call))
        << c.origin << ' ' << describe(c.problem) << ": " << std::get<Unsupported>(call).reason;
    const Report report = check(std::get<Call>(call), {c.problem, slots, capabilities()});
    ASSERT_FALSE(report.rejects())
        << c.origin << ' ' << describe(c.problem) << ": " << to_string(report.findings().front());
  }
}

TEST_P(Generators, DrawProblemsWhoseCallsReadBackAsTheyWereMeant) {
  for (std::uint64_t i = 0; i < many; ++i) {
    const Case c = generate(2, i, problems_only());
    const SlotMap slots = make_slot_map(c.problem);
    const auto call = call_of(c, slots);
    ASSERT_TRUE(std::holds_alternative<Call>(call));
    const Attended meaning = attended(c.problem);
    const auto differs = difference(meaning, read(std::get<Call>(call), c.problem, slots));
    ASSERT_EQ(differs, std::nullopt) << c.origin << ' ' << describe(c.problem);
  }
}

TEST_P(Generators, NeverPlaceABatchWhereTheTableIsTheIdentity) {
  for (std::uint64_t i = 0; i < many; ++i) {
    const Case c = generate(3, i, problems_only());
    EXPECT_FALSE(has_identity_table(c.problem, make_slot_map(c.problem))) << c.origin;
  }
}

TEST_P(Generators, StayWithinTheLimitsTheyAreGiven) {
  GeneratorOptions small = problems_only();
  small.max_kv = 96;
  small.max_requests = 2;
  for (std::uint64_t i = 0; i < many; ++i) {
    const Case c = generate(4, i, small);
    EXPECT_LE(c.problem.max_kv_len(), 96) << c.origin;
    EXPECT_LE(c.problem.requests.size(), 2U) << c.origin;
    EXPECT_THAT(c.origin, testing::HasSubstr("--max-kv 96 --max-requests 2"));
  }
}

TEST_P(Generators, AskOnlyForWhatTheBackendClaims) {
  Capabilities little = capabilities();
  little.window = little.softcap = little.sinks = little.tree_mask = false;
  little.distinct_v_head_dim = false;
  GeneratorOptions limited = problems_only();
  limited.capabilities = &little;
  for (std::uint64_t i = 0; i < many; ++i) {
    const Case c = generate(5, i, limited);
    const Model& m = c.problem.model;
    EXPECT_EQ(m.q_dtype, Dtype::bf16) << c.origin;
    EXPECT_EQ(m.kv_dtype, Dtype::bf16) << c.origin;
    EXPECT_FALSE(m.window || m.softcap > 0 || m.sinks) << c.origin;
    EXPECT_TRUE(m.mla || m.head_dim == m.v_head_dim) << c.origin;
    EXPECT_THAT(features_of(c), testing::Not(testing::Contains("tree"))) << c.origin;
  }
}

std::map<std::string, int> shares(const GeneratorOptions& options) {
  std::map<std::string, int> counts;
  for (std::uint64_t i = 0; i < many; ++i) {
    const Case c = generate(6, i, options);
    for (const std::string& word : features_of(c)) ++counts[word];
    const bool uneven = std::any_of(
        c.problem.requests.begin(), c.problem.requests.end(),
        [&](const Request& r) { return r.new_tokens != c.problem.requests[0].new_tokens; });
    if (c.problem.mode == Mode::target_verify && c.problem.requests.size() > 1) {
      ++counts[uneven ? "verify, uneven" : "verify, equal"];
    }
  }
  return counts;
}

TEST_P(Generators, MeetEveryFeatureOfTheSignature) {
  const std::map<std::string, std::vector<std::string>> wanted = {
      {"unified",
       {"decode",
        "extend",
        "mixed",
        "target_verify",
        "draft_extend_v2",
        "draft_decode",
        "uneven",
        "window",
        "softcap",
        "sinks",
        "mha",
        "mqa",
        "gqa",
        "shared prefix",
        "padded rows",
        "nothing committed",
        "evicted pages",
        "strided pool",
        "narrower v",
        "draft branches",
        "page 1",
        "page 16",
        "page 48",
        "page 64",
        "page 128",
        "fp8_e4m3fn kv",
        "fp8_e4m3fnuz kv",
        "f16 kv"}},
      {"extend",
       {"extend", "mixed", "target_verify", "draft_extend_v2", "uneven", "window", "softcap",
        "sinks", "tree", "encoder", "shared prefix", "padded rows", "nothing committed",
        "narrower v", "mha", "gqa", "f16 kv", "page 1", "page 16"}},
      {"decode",
       {"decode", "draft_decode", "draft branches", "window", "softcap", "sinks", "encoder", "mla",
        "padded rows", "nothing committed", "shared prefix", "narrower v"}},
      {"mla_decode",
       {"decode", "target_verify", "draft_extend_v2", "mla", "shared prefix", "padded rows",
        "fp8_e4m3fn kv", "nothing committed", "page 1", "page 64"}},
      {"batch_prefill", {"extend",        "mixed",
                         "target_verify", "draft_extend_v2",
                         "uneven",        "window",
                         "softcap",       "sinks",
                         "mha",           "mqa",
                         "gqa",           "shared prefix",
                         "padded rows",   "nothing committed",
                         "evicted pages", "strided pool",
                         "narrower v",    "page 1",
                         "page 16",       "page 64",
                         "f16 kv"}},
      {"paged_ragged",
       {"decode", "draft_decode", "draft branches", "softcap", "mha", "mqa", "gqa", "shared prefix",
        "padded rows", "nothing committed", "strided pool", "page 1", "page 16", "page 64",
        "fp8_e4m3fn kv", "fp8_e4m3fnuz kv", "f16 kv"}},
      {"legacy_extend",
       {"extend",        "mixed",        "target_verify", "draft_extend_v2", "uneven",
        "tree",          "window",       "softcap",       "sinks",           "mha",
        "mqa",           "gqa",          "shared prefix", "padded rows",     "nothing committed",
        "evicted pages", "strided pool", "narrower v",    "page 1",          "page 64",
        "f16 kv"}},
      {"vllm_cpu",
       {"decode",        "extend",  "mixed",         "target_verify", "draft_extend_v2",
        "uneven",        "window",  "softcap",       "sinks",         "mha",
        "mqa",           "gqa",     "shared prefix", "padded rows",   "nothing committed",
        "evicted pages", "page 16", "page 64",       "page 128",      "f16 kv"}}};
  const auto counts = shares(problems_only());
  for (const std::string& word : wanted.at(GetParam())) {
    EXPECT_GE(counts.count(word) ? counts.at(word) : 0, static_cast<int>(many) / 200) << word;
  }
}

TEST_P(Generators, DrawEveryRecipeForTheSameProblems) {
  std::map<Recipe, int> counts;
  constexpr std::uint64_t some = 200;
  for (std::uint64_t i = 0; i < some; ++i) {
    const Case c = generate(6, i, options());
    ++counts[c.recipe];
    EXPECT_EQ(c.problem, generate(6, i, problems_only()).problem) << c.origin;
  }
  for (const Recipe recipe : {Recipe::normal, Recipe::recall, Recipe::needle, Recipe::features}) {
    EXPECT_GE(counts[recipe], static_cast<int>(some) / 20) << name(recipe);
  }
  EXPECT_GE(counts[Recipe::shifted], static_cast<int>(some) / 100);
}

TEST_P(Generators, KeepTheRecipeTheyAreGiven) {
  GeneratorOptions given = options();
  given.recipe = Recipe::recall;
  for (std::uint64_t i = 0; i < 100; ++i) {
    const Case c = generate(6, i, given);
    EXPECT_EQ(c.recipe, Recipe::recall) << c.origin;
    EXPECT_THAT(c.origin, testing::EndsWith(" --recipe recall"));
  }
}

/// Why the null oracles would not trust a case that its backend passes.
std::optional<std::string> null_answer_to(std::string_view backend_name, std::uint64_t seed,
                                          std::uint64_t index) {
  const Backend& backend = *select_backends(backend_name).front();
  const Capabilities& capabilities = backend.capabilities();
  const Case c =
      generate(seed, index, {.signature = capabilities.signature, .capabilities = &capabilities});
  const TensorSource source(c.problem, c.recipe, c.seed, c.poison);
  const Attended meaning = attended(c.problem);
  ReferenceOptions options;
  options.round_scaled_q = backend.profile().q_scaled_in_input_dtype;
  const Expected expected = reference_attention(meaning, source, options);
  return why_untrusted({meaning, expected, backend.profile(), source, expected.scaled_q_rounded});
}

TEST(GeneratorPower, CountsWithTheRoundingsOfManySplits) {
  // 512 keys under a cap of 5: losing the newest stayed within the bound of 1,024 partial results.
  EXPECT_EQ(null_answer_to("amx.decode@patch", 20, 573), std::nullopt);
}

TEST(GeneratorPower, CountsOnlyTheRowsThatSeePastTheFirstPage) {
  // Of more than 96 rows and heads, few saw past a page of 128, by keys of little weight.
  EXPECT_EQ(null_answer_to("scalar.vllm_cpu@cpu", 3, 11004), std::nullopt);
}

TEST(GeneratorPower, GivesLargeLogitsOnlyWhereTheirBoundsAreSmallerThanTheMistakes) {
  const Capabilities& capabilities = select_backends("scalar.unified@cpu").front()->capabilities();
  int shifted = 0;
  for (std::uint64_t i = 0; i < 200; ++i) {
    const Case c = generate(7, i, {.signature = Signature::unified, .capabilities = &capabilities});
    if (c.recipe != Recipe::shifted) continue;
    ++shifted;
    EXPECT_EQ(null_answer_to("scalar.unified@cpu", 7, i), std::nullopt) << c.origin;
  }
  EXPECT_GT(shifted, 3);
}

TEST(GeneratorPower, CountsWithAProfileAsLooseAsAnyBackends) {
  const NumericsProfile loosest = loosest_profile();
  for (const Backend* backend : all_backends()) {
    const NumericsProfile& profile = backend->profile();
    EXPECT_LE(profile.kv_splits, loosest.kv_splits) << backend->name();
    EXPECT_LE(profile.exp_relative_error, loosest.exp_relative_error) << backend->name();
    EXPECT_EQ(profile.accumulate, loosest.accumulate) << backend->name();
    EXPECT_EQ(profile.p_dtype, loosest.p_dtype) << backend->name();
    EXPECT_FALSE(profile.denominator_sums_rounded_p) << backend->name();
    for (const auto& [recipe, limit] : loosest.z_limit) {
      EXPECT_LE(profile.z_limit.at(recipe), limit) << backend->name();
    }
  }
}

TEST(GeneratorDefaults, MakeUnevenVerifyLengthsTheRule) {
  auto counts = shares({.signature = Signature::unified, .recipe = Recipe::normal});
  EXPECT_GT(counts["verify, uneven"], 2 * counts["verify, equal"]);
  EXPECT_GT(counts["verify, equal"], 0);
}

}  // namespace
}  // namespace attest
