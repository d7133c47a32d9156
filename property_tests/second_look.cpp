#include "property_tests/second_look.hpp"

#include <utility>

#include "property_tests/generators.hpp"
#include "property_tests/launch_pair.hpp"
#include "reference/compare.hpp"

namespace attest {
namespace {

/// Random data, to which every key contributes, and ordinary numbers where poison was, so that a
/// kernel's result says what it read there.
Case plain(Case c) {
  c.recipe = Recipe::normal;
  c.poison = {.poison = Poison::ordinary, .nan_in_v_tail = true};
  return c;
}

/// One launch of a plain case and what the oracles say of it.
struct Look {
  Case c;
  Call call;
  TensorSource source;
  Attended meaning;
  bool ended = true;  ///< nothing to look at
  RunResult result = {};
  std::vector<OracleResult> oracles = {};

  Look(Case of, Call with)
      : c(plain(std::move(of))),
        call(std::move(with)),
        source(c.problem, c.recipe, c.seed, c.poison),
        meaning(attended(c.problem)) {}

  void launch_on(const Backend& backend, const JudgeOptions& options,
                 const std::vector<std::int64_t>& only_rows) {
    JudgeOptions once = options;
    once.both_poisons = false;
    const Launched launched = launch(c, call, source, meaning, backend, once);
    if (launched.ended) return;
    ReferenceOptions reference;
    reference.only_rows = only_rows;
    reference.threads = options.reference_threads;
    reference.round_scaled_q = backend.profile().q_scaled_in_input_dtype;
    const Expected expected = reference_attention(meaning, source, reference);
    result = launched.finished();
    ended = false;
    oracles = compare(meaning, expected, result.out, backend.profile(), source);
  }
  Failure failure(const NumericsProfile& profile) const {
    return {call, source, meaning, result.out, profile, oracles, result.stray_reads};
  }
};

/// Generated cases of the kernel, small ones.
FurtherOutputs further_cases(const Case& c, const Backend& backend, const JudgeOptions& options) {
  return [&](const std::function<bool(const Failure&)>& see) {
    constexpr std::uint64_t seed = 77;
    constexpr std::uint64_t most = 24;
    GeneratorOptions drawn{.signature = c.signature,
                           .capabilities = &backend.capabilities(),
                           .max_kv = 300,
                           .max_requests = 4};
    drawn.recipe = Recipe::normal;
    for (std::uint64_t i = 0; i < most; ++i) {
      Case other = generate(seed, i, drawn);
      auto call = call_of(other, make_slot_map(other.problem));
      if (!std::holds_alternative<Call>(call)) continue;
      Look look(std::move(other), std::get<Call>(std::move(call)));
      if (!backend.supports(look.call)) continue;
      look.launch_on(backend, options, {});
      if (!look.ended && !see(look.failure(backend.profile()))) return;
    }
  };
}

}  // namespace

std::string diagnose_with_a_second_look(const Case& c, const Failure& failure,
                                        const Backend& backend, const JudgeOptions& options,
                                        const std::vector<std::int64_t>& only_rows) {
  Look again(c, failure.call);
  again.launch_on(backend, options, only_rows);
  // What a changed call does, the calls of other cases do not.
  const bool is_lowered = !c.call && c.fault.empty();
  const FurtherOutputs further = is_lowered ? further_cases(c, backend, options) : FurtherOutputs{};
  if (again.ended || all_passed(again.oracles)) {
    return diagnose(failure, failure, further, options.most_same);
  }
  return diagnose(failure, again.failure(failure.profile), further, options.most_same);
}

}  // namespace attest
