#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "contracts/rules/broken_calls.hpp"
#include "contracts/signatures.hpp"
#include "contracts/signatures/sample_problems.hpp"
#include "contracts/work_lists.hpp"

namespace attest {

/// Lowers a problem, breaks the call, keeps both.
class BrokenCalls {
 public:
  void unified(std::string_view rule, std::string_view story, const Problem& problem,
               void (*broken)(UnifiedCall&)) {
    add(rule, story, problem, lower_unified(problem, make_slot_map(problem)), broken);
  }
  void mla(std::string_view rule, std::string_view story, const Problem& problem,
           void (*broken)(MlaDecodeCall&)) {
    add(rule, story, problem, lower_mla_decode(problem, make_slot_map(problem)), broken);
  }
  /// The same by work lists for three compute units.
  void persistent(std::string_view rule, std::string_view story, const Problem& problem,
                  void (*broken)(MlaDecodeCall&)) {
    const Lowered<MlaDecodeCall> lists =
        with_work_lists(checked(rule, lower_mla_decode(problem, make_slot_map(problem))), 3);
    add(rule, story, problem, lists, broken);
  }
  void prefill(std::string_view rule, std::string_view story, const Problem& problem,
               void (*broken)(BatchPrefillCall&)) {
    add(rule, story, problem, lower_batch_prefill(problem, make_slot_map(problem)), broken);
  }
  void ragged(std::string_view rule, std::string_view story, const Problem& problem,
              void (*broken)(PagedRaggedCall&)) {
    add(rule, story, problem, lower_paged_ragged(problem, make_slot_map(problem)), broken);
  }
  void legacy(std::string_view rule, std::string_view story, const Problem& problem,
              void (*broken)(LegacyExtendCall&)) {
    add(rule, story, problem, lower_legacy_extend(problem, make_slot_map(problem)), broken);
  }
  void vllm(std::string_view rule, std::string_view story, const Problem& problem,
            void (*broken)(VllmCpuCall&)) {
    add(rule, story, problem, lower_vllm_cpu(problem, make_slot_map(problem)), broken);
  }
  /// The call is sound for `expressible`, but the layer or the scheduler wants `problem`, which no
  /// call can say; `then` makes the call say it all the same.
  void unsaid(std::string_view rule, std::string_view story, const Problem& problem,
              const Problem& expressible, void (*then)(Call&) = nullptr,
              std::optional<Signature> of = std::nullopt) {
    const Signature signature =
        of.value_or(expressible.model.mla ? Signature::mla_decode : Signature::unified);
    Call call = checked(rule, lower(signature, expressible, make_slot_map(expressible)));
    if (then) then(call);
    calls_.push_back({rule, story, problem, std::move(call), std::nullopt});
  }
  std::vector<BrokenCall> take() && { return std::move(calls_); }

 private:
  template <class CallType>
  static CallType checked(std::string_view rule, const Lowered<CallType>& lowered) {
    if (const auto* call = std::get_if<CallType>(&lowered)) return *call;
    throw std::logic_error(std::string(rule) + ": " + std::get<Unsupported>(lowered).reason);
  }
  template <class CallType>
  void add(std::string_view rule, std::string_view story, const Problem& problem,
           const Lowered<CallType>& lowered, void (*broken)(CallType&)) {
    CallType call = checked(rule, lowered);
    const Call sound = call;
    broken(call);
    calls_.push_back({rule, story, problem, std::move(call), sound});
  }

  std::vector<BrokenCall> calls_;
};

void break_shapes(BrokenCalls& calls);
void break_offsets_and_lengths(BrokenCalls& calls);
void break_addresses(BrokenCalls& calls);
void break_tensors(BrokenCalls& calls);
void break_features(BrokenCalls& calls);
void break_prefill(BrokenCalls& calls);
void break_memory(BrokenCalls& calls);
void break_paged(BrokenCalls& calls);
void break_legacy(BrokenCalls& calls);
void break_vllm(BrokenCalls& calls);
void break_work_lists(BrokenCalls& calls);

/// A step whose new slots lie on one page, and the same with the last of them handed out singly.
inline Problem slots_together() {
  Problem p = sample_problem(Mode::decode, {{20, 1}});
  p.pool.slots = {{{0, 21}}};
  return p;
}
inline Problem slots_scattered() {
  Problem p = slots_together();
  p.pool.slots = {{{0, 18}, {40, 3}}};
  return p;
}
/// Two requests that verify three and two drafts, the second shorter than a page.
inline Problem uneven_verify() { return sample_problem(Mode::target_verify, {{35, 3}, {9, 2}}); }
inline Problem mla_verify() { return sample_mla_problem(Mode::target_verify, {{18, 2}, {5, 2}}); }

}  // namespace attest
