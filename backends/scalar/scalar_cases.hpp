#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "contracts/signatures.hpp"
#include "memory/tensor_source.hpp"

namespace attest {

/// Test only: a small legal case of one signature.
struct ScalarCase {
  std::string name;
  Signature signature = Signature::unified;
  Problem problem;
  Recipe recipe = Recipe::normal;
};

/// For GoogleTest, which would print bytes, pointers included, into the names of ctest's entries.
void PrintTo(const ScalarCase& c, std::ostream* os);  // NOLINT(readability-identifier-naming)

/// Cases that between them use every feature of every signature.
std::vector<ScalarCase> scalar_cases();

/// The call a correct framework makes. \throws std::logic_error when the case is not a legal one.
Call call_of(const ScalarCase& c, const TensorSource& source);

}  // namespace attest
