#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "contracts/call.hpp"
#include "contracts/capabilities.hpp"
#include "contracts/problem.hpp"
#include "contracts/slot_map.hpp"

namespace attest {

/// What a rule looks at.
enum class RuleKind { call, step, trace, data, runtime };

/// What happens to a kernel whose call breaks the rule.
enum class Severity {
  wrong,   ///< silently different numbers: rejects
  fault,   ///< exception, out-of-bounds access or NaN: rejects
  slow,    ///< right numbers at a multiple of the cost: a finding
  policy,  ///< right today on this kernel, a trap on another: a finding
};

std::string_view name(RuleKind kind);
std::string_view name(Severity severity);
bool rejects(Severity severity);

/// One broken place of one array.
struct Finding {
  std::string rule;  ///< Rule::id
  Severity severity = Severity::wrong;
  std::string where;      ///< "seqused_k[2]", "block_table[1][7]", "max_seqlen_q"
  std::string got;        ///< the value found: "131"
  std::string expected;   ///< what it must be: "134 = 131 committed + 3 new"
  std::int64_t more = 0;  ///< further findings of this rule that were not kept

  bool operator==(const Finding&) const = default;
};

/// "wrong seqused_k.counts_this_steps_tokens: seqused_k[2] is 131, expected 134 = 131 committed + 3
/// new"
std::string to_string(const Finding& finding);

/// Findings of one check. Keeps the first `limit` of each rule and severity and counts the rest.
class Report {
 public:
  explicit Report(std::int64_t limit_per_rule = 3) : limit_(limit_per_rule) {}

  /// Called by the checker around each rule; add() then files under it.
  void begin(std::string_view rule, Severity severity);
  void add(std::string where, std::string got, std::string expected);
  /// Files under the current rule with another severity (capability-dependent rules).
  void add(Severity severity, std::string where, std::string got, std::string expected);
  /// Counts `count` further places like the one added last, without words: for loops over tables
  /// where describing every cell would cost more than checking them.
  void add_more(std::int64_t count);
  /// The current rule needs values the capture did not record.
  void not_recorded(std::string_view array);

  const std::vector<Finding>& findings() const& { return findings_; }
  /// By value: `for (const Finding& f : check(call, truth).findings())` must not dangle.
  std::vector<Finding> findings() && { return std::move(findings_); }
  /// Arrays whose values a rule needed and did not have; non-empty = the call is not fully judged.
  const std::vector<std::string>& missing() const { return missing_; }
  bool rejects() const;
  /// Whether a rule that ran earlier in this check has found something: lets a rule skip a walk
  /// over a table that is already known to be right.
  bool found(std::string_view rule) const;

 private:
  std::int64_t limit_;
  std::string rule_;
  Severity severity_ = Severity::wrong;
  std::size_t first_of_rule_ = 0;  ///< where the current rule's findings begin
  std::vector<Finding> findings_;
  std::vector<std::string> missing_;
};

/// The truth a call is checked against.
struct Truth {
  const Problem& problem;
  const SlotMap& slots;
  /// Of the kernel the call is for; default = a strict generic one.
  Capabilities capabilities = strict_capabilities();
};

/// A named, sourced predicate over one signature's call. The function for a signature is null where
/// the rule does not apply to it.
struct Rule {
  std::string_view id;      ///< "field.fact_in_present_tense"
  std::string_view says;    ///< the sentence
  std::string_view why;     ///< what goes wrong otherwise
  std::string_view source;  ///< public thread or file
  Severity severity = Severity::wrong;
  RuleKind kind = RuleKind::call;
  void (*unified)(const UnifiedCall&, const Truth&, Report&) = nullptr;
  void (*extend)(const ExtendCall&, const Truth&, Report&) = nullptr;
  void (*decode)(const DecodeCall&, const Truth&, Report&) = nullptr;
  void (*mla_decode)(const MlaDecodeCall&, const Truth&, Report&) = nullptr;
  void (*batch_prefill)(const BatchPrefillCall&, const Truth&, Report&) = nullptr;
  void (*paged_ragged)(const PagedRaggedCall&, const Truth&, Report&) = nullptr;
  void (*legacy_extend)(const LegacyExtendCall&, const Truth&, Report&) = nullptr;
  void (*vllm_cpu)(const VllmCpuCall&, const Truth&, Report&) = nullptr;

  bool applies_to(Signature signature) const;
};

}  // namespace attest
