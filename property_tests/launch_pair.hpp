#pragma once

#include <optional>
#include <string>

#include "backends/backend.hpp"
#include "contracts/attended.hpp"
#include "contracts/verdict.hpp"
#include "property_tests/case.hpp"
#include "property_tests/judge.hpp"

namespace attest {

/// What one or two launches of a case left, or the verdict that ended it before any number.
struct Launched {
  std::optional<RunResult> result;      ///< of the first launch
  std::optional<Verdict> ended;         ///< crashed, hung, or mismatch when the kernel raised
  std::string reason;                   ///< of `ended`
  std::vector<OracleResult> agreement;  ///< "damage" and, after two launches, "poison"

  /// The result of a launch that was not ended. Throws std::logic_error if there is none.
  const RunResult& finished() const;
};

/// Runs the call with the case's poison and sentinel, then, if asked for, with the other poison and
/// the other sentinel: rows with a value must agree bit for bit, whatever lies in bytes the kernel
/// must not read or found in its output buffer.
Launched launch(const Case& c, const Call& call, const TensorSource& source,
                const Attended& meaning, const Backend& backend, const JudgeOptions& options);

}  // namespace attest
