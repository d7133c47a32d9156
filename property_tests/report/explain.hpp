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

/// Sentence, why, source, severity, kind, signatures of a rule, and a call that breaks it with the
/// findings it gets. Nothing when there is no such rule or metadata fault.
std::optional<std::string> explain_text(std::string_view id, const Console& console);

/// The metadata faults: id, sentence, source.
std::string faults_text(const Console& console);
std::string faults_json();

/// "no rule or fault 'seqused'; did you mean ...?"
std::string unknown_subject(std::string_view id);

}  // namespace attest
