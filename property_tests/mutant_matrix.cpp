#include "property_tests/mutant_matrix.hpp"

#include <algorithm>
#include <array>

#include "backends/registry.hpp"
#include "contracts/rules.hpp"
#include "contracts/signatures.hpp"
#include "property_tests/generators.hpp"
#include "property_tests/judge.hpp"
#include "property_tests/report/by_count.hpp"

namespace attest {
namespace {

struct Reason {
  std::string_view id, why;
};

// Rules about what the scalar kernel does not depend on and the production kernel does.
constexpr std::array conservative = {
    Reason{"attn_logits.fits_the_batch", "the scalar kernel needs no scratch memory"},
    Reason{"dtypes.index_arrays_are_int32",
           "the scalar kernel reads arrays by their dtype, AITER's kernels as int32"},
    Reason{"extend_seq_lens.has_the_tables_dtype",
           "the operator refuses other dtypes, the scalar kernel takes any"},
    Reason{"kv_cache_dtype.is_the_caches",
           "the scalar kernel reads the cache by its dtype, AITER's by this word"},
    Reason{"kv_last_page_lens.fits_the_page", "not read at page size 1, and wrong at any other"},
    Reason{"layout.cache_is_the_pool",
           "the harness lays the pool out by the call's own strides, a framework's lies already"},
    Reason{"layout.q_is_contiguous",
           "the scalar kernel takes q's strides, AITER's MLA kernel folds rows and heads"},
    Reason{"seq_lens.is_int64", "the operator refuses other dtypes, the scalar kernel takes any"},
    Reason{"tensor.lies_inside_its_storage",
           "the harness gives every tensor the memory its view spans, a framework's lies already"},
    Reason{"work_lists.are_int32",
           "the scalar kernel reads arrays by their dtype, AITER's kernels as int32"},
    Reason{"work_plan.is_the_launchs",
           "the scalar kernel takes right lists whatever they were asked for, AITER's kernel is "
           "chosen by types, heads and rows"},
    Reason{"workspace_buffer.holds_every_partition",
           "the scalar kernel keeps partial results to itself"},
};

/// So many right calls of one rule are no chance: one may lack a key of no weight.
constexpr std::int64_t few_right_calls = 3;

void note(std::vector<std::string>& rules, const std::string& rule) {
  if (std::ranges::count(rules, rule) == 0) rules.push_back(rule);
}

MutantTrial try_one(const Case& c, const Backend& backend, const FieldMutant& mutant) {
  MutantTrial trial{.mutant = mutant, .origin = c.origin, .problem = describe(c.problem)};
  const Judgement judgement = judge(c, backend,
                                    {.rules = RulesMode::report,
                                     .reference_threads = 1,
                                     .both_poisons = false,
                                     .diagnose = false});
  for (const Finding& finding : judgement.findings) {
    note(rejects(finding.severity) ? trial.rejecting : trial.noting, finding.rule);
  }
  const Verdict v = judgement.verdict;
  trial.right = v == Verdict::pass;
  trial.launched = trial.right || v == Verdict::mismatch || v == Verdict::crashed;
  return trial;
}

}  // namespace

std::string_view conservative_because(std::string_view rule) {
  for (const Reason& reason : conservative) {
    if (reason.id == rule) return reason.why;
  }
  return "";
}

std::vector<std::string_view> conservative_rules() {
  std::vector<std::string_view> ids;
  ids.reserve(conservative.size());
  for (const Reason& reason : conservative) ids.push_back(reason.id);
  return ids;
}

std::string unexplained_outcome(Signature signature, const MutantTrial& trial) {
  const std::string what = std::string(name(signature)) + ", " + trial.mutant.field + ": " +
                           trial.mutant.change + " (" + trial.origin + ", " + trial.problem + ")";
  // A policy finding says itself on which kernels the numbers go wrong.
  if (trial.missed() && trial.noting.empty()) {
    return what + ": the numbers are wrong and no rule rejects it";
  }
  return "";
}

std::vector<std::string> MutantMatrix::unjustified_rules() const {
  std::vector<std::string> ids;
  for (const auto& [id, row] : rules_) {
    // A call that was not launched, or could not have failed, says nothing about its rules.
    if (row.right >= few_right_calls && row.wrong == 0 && conservative_because(id).empty())
      ids.push_back(id);
  }
  return ids;
}

void try_mutants(const MutantPlan& plan,
                 const std::function<void(Signature, const MutantTrial&)>& each) {
  const auto share = plan.calls / static_cast<std::int64_t>(generated_signatures.size());
  for (const Signature signature : generated_signatures) {
    const Backend& backend =
        *select_backends("scalar." + std::string(name(signature)) + "@cpu").front();
    const std::vector<FieldMutant> mutants = field_mutants(signature);
    std::int64_t done = 0;
    // A mutant that a case cannot have is tried on later ones.
    for (std::uint64_t i = 0; done < share && i < 20 * static_cast<std::uint64_t>(share); ++i) {
      Case c = generate(plan.seed, i / 3,
                        {.signature = signature,
                         .capabilities = &backend.capabilities(),
                         .max_kv = 96,
                         .max_requests = 3});
      const FieldMutant& mutant = mutants[i % mutants.size()];
      const auto lowered = call_of(c, make_slot_map(c.problem));
      if (!std::holds_alternative<Call>(lowered)) continue;
      c.call = mutated(std::get<Call>(lowered), mutant, c.seed);
      if (!c.call) continue;
      each(signature, try_one(c, backend, mutant));
      ++done;
    }
  }
}

void MutantMatrix::add(Signature signature, const MutantTrial& trial) {
  const std::pair key(signature, trial.mutant.field + ": " + trial.mutant.change);
  MutantRow& row = rows_[key];
  ++row.applied;
  row.rejected += trial.rejected() ? 1 : 0;
  row.noted += !trial.rejected() && !trial.noting.empty() ? 1 : 0;
  row.launched += trial.launched ? 1 : 0;
  row.wrong += trial.launched && !trial.right ? 1 : 0;
  row.missed += trial.missed() ? 1 : 0;
  row.needless += trial.needless() ? 1 : 0;
  for (const std::string& rule : trial.rejecting) {
    ++row.rules[rule];
    RuleRow& of_rule = rules_[rule];
    ++of_rule.rejected;
    of_rule.wrong += trial.launched && !trial.right ? 1 : 0;
    of_rule.right += trial.launched && trial.right ? 1 : 0;
  }
  for (const std::string& rule : trial.noting) ++row.rules[rule];
}

std::string MutantMatrix::text() const {
  std::string text;
  for (const Signature signature : all_signatures) {
    const auto mine = [&](const auto& key) { return key.first == signature; };
    const auto of_it = [&](const auto& row) { return mine(row.first); };
    if (std::ranges::none_of(rows_, of_it)) continue;
    text += "\n## " + std::string(name(signature)) +
            "\n\n| field: change | calls | rejected | noted | launched | wrong | missed | needless "
            "| rules |\n|---|---|---|---|---|---|---|---|---|\n";
    for (const auto& [key, row] : rows_) {
      if (!mine(key)) continue;
      std::string rules;
      for (const auto& [rule, calls] : by_count(row.rules)) {
        rules += (rules.empty() ? "" : ", ") + rule + " " + std::to_string(calls);
      }
      text += "| " + key.second;
      for (const std::int64_t n : {row.applied, row.rejected, row.noted, row.launched, row.wrong,
                                   row.missed, row.needless}) {
        text += " | " + std::to_string(n);
      }
      text += " | " + rules + " |\n";
    }
  }
  text +=
      "\n## Rules\n\n| rule | rejected | wrong | right | why it may reject right numbers |\n"
      "|---|---|---|---|---|\n";
  for (const auto& [id, row] : rules_) {
    text += "| " + id + " | " + std::to_string(row.rejected) + " | " + std::to_string(row.wrong) +
            " | " + std::to_string(row.right) + " | " +
            (row.wrong == 0 ? std::string(conservative_because(id)) : "") + " |\n";
  }
  return text;
}

}  // namespace attest
