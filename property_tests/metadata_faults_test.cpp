#include "property_tests/metadata_faults.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "contracts/rules.hpp"
#include "property_tests/every_backend.hpp"
#include "property_tests/generators.hpp"
#include "property_tests/judge.hpp"

namespace attest {
namespace {

constexpr std::uint64_t enough = 1500;

/// Faults whose calls a scalar kernel computes rightly, and why.
const std::map<std::string, std::string> right_numbers = {
    {"seqused_k_int32", "wrong only on kernels that take its dtype into offsets"},
    {"req_to_token_int32", "wrong only on kernels that take its dtype into offsets"},
    {"kv_heads_expanded", "slow: the same keys are read once per query head"},
    {"no_split_kv", "slow: one program walks the whole context"},
    {"window_beside_an_encoder",
     "the scalar kernel's window moves the offset only where it is shorter than the request"},
    {"mla_last_page_len_of_sequence", "the scalar kernel reads no last page length of page size 1"},
    {"mla_kv_indptr_int64", "the scalar kernel reads arrays by their dtype, AITER's by int32"},
};

/// Faults that give wrong numbers and that a rule only reports on some signatures, and why.
const std::map<std::string, std::string> reported_only = {
    {"window_one_key_short",
     "unified callers disagree whether a window counts its own key, so the rule is a policy"},
};

std::vector<std::string> ids() {
  std::vector<std::string> all;
  for (const MetadataFault& fault : all_metadata_faults()) all.emplace_back(fault.id);
  return all;
}

class Faults : public testing::TestWithParam<std::string> {
 protected:
  /// Calls `each` with generated cases that can have the fault until it returns true. Without a
  /// recipe they have data that shows mistakes; calls are the same and quicker with any.
  template <class Each>
  bool find(std::int64_t max_kv, std::optional<Recipe> recipe, Each&& each) const {
    for (std::uint64_t i = 0; i < enough; ++i) {
      for (const Signature signature : generated_signatures) {
        const std::string selector = "scalar." + std::string(name(signature));
        const Backend& backend = *select_backends(selector).front();
        Case c = generate(9, i,
                          {.signature = signature,
                           .capabilities = &backend.capabilities(),
                           .max_kv = max_kv,
                           .max_requests = 4,
                           .recipe = recipe});
        c.fault = GetParam();
        const SlotMap slots = make_slot_map(c.problem);
        if (!std::holds_alternative<Call>(call_of(c, slots))) continue;
        if (each(c, backend)) return true;
      }
    }
    return false;
  }
  std::int64_t lengths() const {
    if (GetParam() == "partitions_of_a_shorter_step") return 600;  // one is 256 keys
    return GetParam() == "no_split_kv" ? 8192 : 200;
  }
};

INSTANTIATE_TEST_SUITE_P(, Faults, testing::ValuesIn(ids()),
                         [](const auto& info) { return info.param; });

TEST_P(Faults, ChangeTheCallOrSayThatTheyDoNot) {
  int applied = 0;
  find(lengths(), Recipe::normal, [&](const Case& c, const Backend&) {
    const SlotMap slots = make_slot_map(c.problem);
    Case right = c;
    right.fault.clear();
    EXPECT_FALSE(std::get<Call>(call_of(c, slots)) == std::get<Call>(call_of(right, slots)))
        << c.origin << ' ' << describe(c.problem);
    return ++applied >= 20;
  });
  EXPECT_GT(applied, 0);
}

TEST_P(Faults, BreakARuleOnEveryCallTheyChange) {
  int applied = 0;
  find(lengths(), Recipe::normal, [&](const Case& c, const Backend& backend) {
    const SlotMap slots = make_slot_map(c.problem);
    const Call call = std::get<Call>(call_of(c, slots));
    const Report report = check(call, {c.problem, slots, backend.capabilities()});
    const bool rejected_all_the_same = GetParam().starts_with("mla_");
    if ((right_numbers.contains(GetParam()) && !rejected_all_the_same) ||
        reported_only.contains(GetParam())) {
      EXPECT_FALSE(report.findings().empty()) << c.origin << ' ' << describe(c.problem);
    } else {
      EXPECT_TRUE(report.rejects()) << c.origin << ' ' << describe(c.problem);
    }
    return ++applied >= 20;
  });
  EXPECT_GT(applied, 0);
}

TEST_P(Faults, MakeTheScalarKernelMismatchWhenRulesAreOnlyReported) {
  if (right_numbers.contains(GetParam())) GTEST_SKIP() << right_numbers.at(GetParam());
  Judgement judgement;
  const bool mismatched = find(lengths(), std::nullopt, [&](const Case& c, const Backend& backend) {
    judgement = judge(c, backend, {.rules = RulesMode::report, .reference_threads = 1});
    return judgement.verdict == Verdict::mismatch;
  });
  EXPECT_TRUE(mismatched);
  std::cout << judgement.repro << '\n' << judgement.reason << "; " << judgement.diagnosis << '\n';
}

TEST(FaultTable, NamesEachFaultOnceWithASentenceAndASource) {
  std::set<std::string_view> seen;
  for (const MetadataFault& fault : all_metadata_faults()) {
    EXPECT_TRUE(seen.insert(fault.id).second) << fault.id;
    EXPECT_EQ(find_metadata_fault(fault.id), &fault);
    EXPECT_FALSE(fault.says.empty()) << fault.id;
    EXPECT_FALSE(fault.source.empty()) << fault.id;
  }
  EXPECT_GE(seen.size(), 20U);
  EXPECT_EQ(find_metadata_fault("no such fault"), nullptr);
  for (const auto& [id, why] : reported_only) EXPECT_NE(find_metadata_fault(id), nullptr) << id;
  for (const auto& [id, why] : right_numbers) EXPECT_NE(find_metadata_fault(id), nullptr) << id;
}

/// Each fault on every kind of generated call; the pairs that ever changed one.
std::set<std::pair<std::string_view, Signature>> pairs_that_change() {
  std::set<std::pair<std::string_view, Signature>> seen;
  for (std::uint64_t i = 0; i < 250; ++i) {
    for (const Signature signature : generated_signatures) {
      const Backend& backend = *select_backends("scalar." + std::string(name(signature))).front();
      const Case c = generate(9, i,
                              {.signature = signature,
                               .capabilities = &backend.capabilities(),
                               .max_kv = 200,
                               .max_requests = 4,
                               .recipe = Recipe::normal});
      const SlotMap slots = make_slot_map(c.problem);
      const auto lowered = call_of(c, slots);
      const Call* const call = std::get_if<Call>(&lowered);
      if (call == nullptr) continue;
      for (const MetadataFault& fault : all_metadata_faults()) {
        if (seen.contains({fault.id, signature})) continue;
        Call changed = *call;
        if (fault.apply(c.problem, slots, changed)) seen.insert({fault.id, signature});
      }
    }
  }
  return seen;
}

TEST(FaultTable, SaysOfWhichSignaturesEachFaultIs) {
  const auto changes = pairs_that_change();
  for (const MetadataFault& fault : all_metadata_faults()) {
    for (const Signature signature : all_signatures) {
      const bool seen = changes.contains({fault.id, signature});
      // No case of vllm_cpu drafts; long contexts and pools past 2^31 elements are rare.
      const bool drafts = fault.needs == "a draft_decode step" && signature == Signature::vllm_cpu;
      const bool rare = drafts || fault.id == "no_split_kv" || fault.id == "req_to_token_int32" ||
                        fault.id == "partitions_of_a_shorter_step";
      EXPECT_TRUE(seen == fault.is_of(signature) || (rare && !seen))
          << fault.id << (seen ? " changes " : " never changes ") << name(signature);
    }
  }
}

TEST(FaultTable, SaysWhyAFaultChangesNothing) {
  const MetadataFault& seqused = *find_metadata_fault("seqused_k_short_by_one");
  EXPECT_EQ(why_nothing_changes(seqused, Signature::vllm_cpu),
            "fault seqused_k_short_by_one changes seqused_k, which vllm_cpu does not have; it is "
            "one of unified");
  EXPECT_EQ(why_nothing_changes(*find_metadata_fault("max_seqlen_q_one"), Signature::mla_decode),
            "fault max_seqlen_q_one is not a mistake of mla_decode; it is one of unified");
  EXPECT_EQ(why_nothing_changes(*find_metadata_fault("softcap_missing"), Signature::unified),
            "fault softcap_missing changes nothing in this call: it takes a layer with a cap (it "
            "changes softcap, logit_cap, logits_soft_cap)");
  for (const MetadataFault& fault : all_metadata_faults()) {
    EXPECT_NE(fault.signatures, 0U) << fault.id;
    EXPECT_FALSE(fault.argument.empty() || fault.needs.empty()) << fault.id;
    for (const Signature signature : all_signatures) {
      EXPECT_THAT(why_nothing_changes(fault, signature), testing::HasSubstr(fault.id));
    }
  }
}

TEST(FaultTable, RefusesAFaultNobodyKnows) {
  Case c = generate(1, 0, {.signature = Signature::unified});
  c.fault = "no such fault";
  const auto call = call_of(c, make_slot_map(c.problem));
  ASSERT_TRUE(std::holds_alternative<Unsupported>(call));
  EXPECT_THAT(std::get<Unsupported>(call).reason, testing::HasSubstr("no such fault"));
}

}  // namespace
}  // namespace attest
