#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "backends/backend.hpp"
#include "property_tests/case.hpp"
#include "property_tests/field_mutants.hpp"

namespace attest {

/// What one mutated call did.
struct MutantTrial {
  FieldMutant mutant;
  std::vector<std::string> rejecting, noting;  ///< rules, each once
  bool launched = false;  ///< the kernel ran, or refused by itself, and could have failed
  bool right = false;     ///< and every oracle passed
  std::string origin, problem;

  bool rejected() const { return !rejecting.empty(); }
  /// No rule rejects, and the numbers are wrong.
  bool missed() const { return !rejected() && launched && !right; }
  /// A rule rejects, and the numbers are right on this kernel.
  bool needless() const { return rejected() && launched && right; }
};

/// Why a rule may reject calls none of which goes wrong on the scalar kernel; empty for a rule that
/// may not.
std::string_view conservative_because(std::string_view rule);
/// The rules that have such a reason.
std::vector<std::string_view> conservative_rules();

/// One line for a trial that nothing explains: its numbers are wrong, no rule rejects it, and no
/// policy finding names it either.
std::string unexplained_outcome(Signature signature, const MutantTrial& trial);

/// The outcome of one mutant of one signature over many calls.
struct MutantRow {
  std::int64_t applied = 0, rejected = 0, noted = 0, launched = 0, wrong = 0, missed = 0,
               needless = 0;
  std::map<std::string, std::int64_t> rules;  ///< calls each rule fired on
};

/// What became of the calls that one rule rejected.
struct RuleRow {
  std::int64_t rejected = 0, wrong = 0, right = 0;
};

class MutantMatrix {
 public:
  void add(Signature signature, const MutantTrial& trial);
  /// Rules that rejected several launched calls, all with the right numbers, and that have no
  /// reason for it. One or two say nothing: a key of no weight, or two keys that every row sees
  /// swapped, change no output.
  std::vector<std::string> unjustified_rules() const;
  /// A table of mutants by signature and field, and the totals; Markdown for docs/.
  std::string text() const;
  const std::map<std::string, RuleRow>& rules() const { return rules_; }

 private:
  std::map<std::pair<Signature, std::string>, MutantRow> rows_;
  std::map<std::string, RuleRow> rules_;
};

struct MutantPlan {
  std::uint64_t seed = 1;
  std::int64_t calls = 2000;  ///< mutated calls over all signatures
};

/// Mutates generated calls, one change each, every mutant of every signature in turn, and judges
/// each with the rules and on the scalar kernel. \throws as judge()
void try_mutants(const MutantPlan& plan,
                 const std::function<void(Signature, const MutantTrial&)>& each);

}  // namespace attest
