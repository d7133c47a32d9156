#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "property_tests/report/console.hpp"

namespace attest {

/// Rules by field: severity, id, sentence.
std::string rules_text(const Console& console);
/// JSON array of all rules, or of one.
std::string rules_json(std::string_view only = {});

/// Everything that has this name, a block each. Of a rule: sentence, why, source, severity, kind,
/// signatures, and a call that breaks it with the findings it gets; of a fault what it changes and
/// where; of others what they are (names.hpp). Nothing when nothing is called so.
std::optional<std::string> explain_text(std::string_view subject, const Console& console);
/// The same as a JSON array.
std::string explain_json(std::string_view subject);

/// Every name but those of rules and faults: kind, name, sentence.
std::string names_text(const Console& console);
std::string names_json();

/// The metadata faults: id, sentence, source.
std::string faults_text(const Console& console);
std::string faults_json();

/// "no rule, fault or other name 'seqused'; did you mean ...?"
std::string unknown_subject(std::string_view id);
/// "no fault of a call is named 'stale'; did you mean ...?", also where the name is another thing's
std::string unknown_fault(std::string_view id);

}  // namespace attest
