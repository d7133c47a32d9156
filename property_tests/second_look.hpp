#pragma once

#include <string>

#include "property_tests/diagnose.hpp"
#include "property_tests/judge.hpp"

namespace attest {

/// The diagnosis of a failure, with the help of more launches: of the same call over random
/// numbers, to which every key contributes, and with ordinary numbers where poison was, so that a
/// result says what was read there; and, where several mistakes fit, of a few generated cases. A
/// launch that does not end with an output tells nothing, nor does the first of them where it is
/// right.
std::string diagnose_with_a_second_look(const Case& c, const Failure& failure,
                                        const Backend& backend, const JudgeOptions& options,
                                        const std::vector<std::int64_t>& only_rows);

}  // namespace attest
