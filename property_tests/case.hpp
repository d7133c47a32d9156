#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "backends/backend.hpp"
#include "contracts/address_interval.hpp"
#include "contracts/call.hpp"
#include "contracts/problem.hpp"
#include "contracts/signatures.hpp"
#include "fixtures/fixture.hpp"
#include "memory/tensor_source.hpp"

namespace attest {

/// One thing to judge: a value, small, printable, re-creatable from one line.
struct Case {
  Problem problem;
  Signature signature = Signature::unified;
  Recipe recipe = Recipe::normal;
  std::uint64_t seed = 1;  ///< of the tensors
  PoisonPlan poison;
  std::string fault;         ///< named metadata fault put into the lowered call; empty = none
  std::optional<Call> call;  ///< explicit call instead of the lowering
  /// The offset boundary a large-KV case is there to reach: a call that does not is untrusted.
  std::optional<Crossing> aim;
  /// 0: every row is compared. Else only so many (long_context.hpp), where the reference is dear.
  std::int64_t sampled_rows = 0;
  std::string origin;  ///< "--seed 1 --case 42" or a fixture path: how a person gets it again
};

/// The call to launch: the explicit one, or lower() with the fault applied.
std::variant<Call, Unsupported> call_of(const Case& c, const SlotMap& slots);

/// One side of a fixture as a case. Of a trace of two steps it is the second, whose fault is one of
/// step_faults.hpp and becomes explicit arguments. \throws FixtureError when there are more steps,
/// or the fault does not fit
Case case_of(const Fixture& fixture, bool with_fault);

/// The fixture that replays a case, expecting `verdict` of `backend`.
Fixture fixture_of(const Case& c, std::string_view backend, Verdict verdict,
                   const std::vector<std::string>& rules);

}  // namespace attest
