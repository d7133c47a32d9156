#pragma once

#include <string>

#include "property_tests/report/console.hpp"
#include "property_tests/report/result.hpp"

namespace attest {

/// The block a person reads when a case goes wrong: verdict, what was asked, which oracle or rule
/// says no and where, what explains it, and the line that gets it again. Ends in a newline.
std::string failure_text(const CaseResult& result, const Console& console);

/// "  by hard": the oracle or rule that found a failure, or the reason when none did (a kernel that
/// raised, a process that died). Empty for other verdicts.
std::string found_by(const Judgement& judgement);

/// One line: "pass  scalar.unified@cpu  case 42  0.01 s  error/bound 0.31".
std::string result_line(const CaseResult& result, const Console& console);

}  // namespace attest
