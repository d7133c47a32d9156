#pragma once

#include <string>

#include "property_tests/check_calls.hpp"
#include "property_tests/report/console.hpp"
#include "property_tests/report/result.hpp"

namespace attest {

/// A block for a call with something to say (findings, values missing, a differing label); empty
/// for one that is simply right.
std::string checked_call_text(const CheckedCall& call, const Console& console);

/// Table by kernel, the rules that fired with the public thread or file each comes from, calls
/// whose label is only a doubt, disagreements, and one closing sentence.
std::string check_summary_text(const CheckSummary& summary, bool expect_labels,
                               const Console& console);

/// "12 calls: 11 judged, 2 wrong, 0 without recorded values, 1 unsupported", and what could not be
/// read; without the end of a sentence.
std::string closing_sentence(const CheckSummary& summary);

/// The call as one JUnit case of its kernel. With labels, only a differing one is a failure.
CaseResult as_case_result(const CheckedCall& call, bool expect_labels);

/// Lines of the check record (docs/cli.md): {"kind": "call"}, {"kind": "unread"} and
/// {"kind": "summary"}.
std::string checked_call_json(const CheckedCall& call);
std::string unread_json(const UnreadInput& unread);
std::string check_summary_json(const CheckSummary& summary, int exit_code);

}  // namespace attest
