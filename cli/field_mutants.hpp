#pragma once

#include "cli/commands.hpp"
#include "property_tests/mutant_matrix.hpp"

namespace attest {

/// `attest mutants --class metadata`: one field of generated calls changed at a time.
Ending change_fields(const MutantPlan& plan);

}  // namespace attest
