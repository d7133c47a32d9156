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

/// Why a rule that rejects may do so where the model kernel computes the right numbers; empty for a
/// rule that may not.
std::string_view conservative_because(std::string_view rule);
/// The rules that have such a reason.
std::vector<std::string_view> conservative_rules();

/// One line when rules and numbers disagree and nothing explains it: no rule rejects a call whose
/// numbers are wrong, and no policy finding names it either; or rules reject a call whose numbers
/// are right, none of them for a reason above.
std::string unexplained_outcome(Signature signature, const MutantTrial& trial);

/// The outcome of one mutant of one signature over many calls.
struct MutantRow {
  std::int64_t applied = 0, rejected = 0, noted = 0, launched = 0, wrong = 0, missed = 0,
               needless = 0;
  std::map<std::string, std::int64_t> rules;  ///< calls each rule fired on
};

class MutantMatrix {
 public:
  void add(Signature signature, const MutantTrial& trial);
  /// A table of mutants by signature and field, and the totals; Markdown for docs/.
  std::string text() const;
  const std::map<std::pair<Signature, std::string>, MutantRow>& rows() const { return rows_; }

 private:
  std::map<std::pair<Signature, std::string>, MutantRow> rows_;
  std::vector<std::pair<Signature, std::string>> order_;
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
