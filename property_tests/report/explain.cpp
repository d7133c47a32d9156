#include "property_tests/report/explain.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <variant>

#include "contracts/rules.hpp"
#include "property_tests/case.hpp"
#include "property_tests/metadata_faults.hpp"
#include "property_tests/report/examples.hpp"
#include "property_tests/report/names.hpp"
#include "property_tests/report/near_names.hpp"
#include "property_tests/report/numbers.hpp"
#include "property_tests/report/severity_words.hpp"
#include "property_tests/report/text_table.hpp"
#include "property_tests/step_faults.hpp"

namespace attest {
namespace {

using Json = nlohmann::ordered_json;

std::string signatures_of(const Rule& rule) {
  std::string text;
  for (const Signature signature : all_signatures) {
    if (rule.applies_to(signature))
      text += (text.empty() ? "" : ", ") + std::string(name(signature));
  }
  return text;
}

std::string severity_text(Severity severity, const Console& console) {
  const std::string word(name(severity));
  return rejects(severity) ? console.bad(word) : console.doubtful(word);
}

/// The example's own call, checked now: what it is and what the rule says of it.
std::string example_text(const Example& example, std::string_view id) {
  const Fixture fixture = parse_fixture(example.json, example.file);
  const Case c = case_of(fixture, fixture.faulty.has_value());
  const SlotMap slots = make_slot_map(c.problem);
  std::string text = "  example    " + std::string(example.file) + "\n";
  if (!fixture.story.empty()) text += "             " + fixture.story + "\n";
  text +=
      "             " + std::string(fixture.signature) + " call for: " + describe(c.problem) + "\n";
  if (!c.fault.empty()) text += "             with the fault " + c.fault + " put in\n";
  const auto call = call_of(c, slots);
  if (const auto* unsupported = std::get_if<Unsupported>(&call)) {
    return text + "             cannot be shown: " + unsupported->reason + "\n";
  }
  const Report report = check(std::get<Call>(call), Truth{c.problem, slots});
  std::string found;
  for (const Finding& finding : report.findings()) {
    if (finding.rule != id) continue;
    found += "  it says    " + finding.where + " is " + finding.got + ", expected " +
             finding.expected + "\n";
    if (finding.more > 0) found += "             and " + counted(finding.more, "more place") + "\n";
  }
  if (found.empty())
    found = "  it says    (only for kernels that declare the capability it needs)\n";
  return text + found;
}

std::string rule_text(const Rule& rule, const Console& console) {
  std::string text = console.bold(rule.id) + "\n  says       " + std::string(rule.says) +
                     "\n  why        " + std::string(rule.why) + "\n  source     " +
                     std::string(rule.source) + "\n  severity   " +
                     severity_text(rule.severity, console) + ": " +
                     std::string(consequence(rule.severity)) + "\n  kind       " +
                     std::string(name(rule.kind)) + "\n  signatures " + signatures_of(rule) + "\n";
  for (const Example& example : rule_examples()) {
    if (example.rule == rule.id) return text + example_text(example, rule.id);
  }
  return text;
}

Json rule_object(const Rule& rule) {
  Json json = {{"kind", "rule"},
               {"id", rule.id},
               {"says", rule.says},
               {"why", rule.why},
               {"source", rule.source},
               {"severity", name(rule.severity)},
               {"rule_kind", name(rule.kind)},
               {"rejects", rejects(rule.severity)},
               {"signatures", Json::array()},
               {"examples", Json::array()}};
  for (const Signature signature : all_signatures) {
    if (rule.applies_to(signature)) json["signatures"].push_back(name(signature));
  }
  for (const Example& example : rule_examples()) {
    if (example.rule == rule.id) json["examples"].push_back(Json::parse(example.json));
  }
  return json;
}

}  // namespace

std::string rules_text(const Console& console) {
  TextTable table({{"rule"}, {"severity"}, {"says"}});
  for (const Rule& rule : all_rules()) {
    table.add(
        {std::string(rule.id), severity_text(rule.severity, console), std::string(rule.says)});
  }
  return table.str() + "\n" + counted(static_cast<std::int64_t>(all_rules().size()), "rule") +
         ". attest explain RULE says why, gives the source and a call that breaks it; attest "
         "explain faults lists the mistakes that can be put into a call, attest explain names "
         "every "
         "other name that a report prints.\n";
}

std::string rules_json(std::string_view only) {
  Json json = Json::array();
  for (const Rule& rule : all_rules()) {
    if (only.empty() || rule.id == only) json.push_back(rule_object(rule));
  }
  return json.dump(2) + "\n";
}

namespace {

template <class Fault>
std::string fault_text(const Fault& fault, const Console& console) {
  return console.bold(fault.id) + "\n  kind       metadata fault\n  says       " +
         std::string(fault.says) + "\n  source     " + std::string(fault.source) + "\n";
}

std::string signatures_of(const MetadataFault& fault) {
  std::string text;
  for (const Signature signature : all_signatures) {
    if (fault.is_of(signature)) text += (text.empty() ? "" : ", ") + std::string(name(signature));
  }
  return text;
}

std::string name_text(const KnownName& known, const Console& console) {
  std::string text = console.bold(known.name) + "\n  kind       " + std::string(known.kind) +
                     "\n  says       " + known.says + "\n";
  if (!known.look.empty()) text += "  look at    " + known.look + "\n";
  return known.source.empty() ? text : text + "  source     " + known.source + "\n";
}

}  // namespace

std::optional<std::string> explain_text(std::string_view subject, const Console& console) {
  const std::string_view id = bare_name(subject);
  std::string text;
  const auto add = [&](const std::string& block) { text += (text.empty() ? "" : "\n") + block; };
  if (const Rule* rule = find_rule(id)) add(rule_text(*rule, console));
  if (const MetadataFault* fault = find_metadata_fault(id)) {
    add(fault_text(*fault, console) + "  changes    " + std::string(fault->argument) +
        "\n  takes      " + std::string(fault->needs) + "\n  signatures " + signatures_of(*fault) +
        "\n");
  }
  if (const StepFault* fault = find_step_fault(id)) {
    add(fault_text(*fault, console) + "  between    two steps: only in fixtures with a trace\n");
  }
  for (const KnownName& known : names_called(subject)) add(name_text(known, console));
  return text.empty() ? std::nullopt : std::optional(text);
}

std::string names_text(const Console& console) {
  TextTable table({{"kind"}, {"name"}, {"says"}});
  for (const KnownName& known : known_names()) {
    table.add({std::string(known.kind), console.bold(known.name), known.says});
  }
  return table.str();
}

std::string faults_text(const Console& console) {
  TextTable table({{"fault"}, {"says"}, {"source"}});
  for (const MetadataFault& fault : all_metadata_faults()) {
    table.add({console.bold(fault.id), std::string(fault.says), std::string(fault.source)});
  }
  for (const StepFault& fault : all_step_faults()) {
    table.add({console.bold(fault.id), std::string(fault.says), std::string(fault.source)});
  }
  return table.str();
}

namespace {

Json fault_object(const MetadataFault& fault) {
  return {{"kind", "fault"}, {"id", fault.id}, {"says", fault.says}, {"source", fault.source}};
}
Json fault_object(const StepFault& fault) {
  return {{"kind", "step fault"}, {"id", fault.id}, {"says", fault.says}, {"source", fault.source}};
}
Json name_object(const KnownName& known) {
  Json json = {
      {"kind", known.kind}, {"id", known.name}, {"says", known.says}, {"source", known.source}};
  if (!known.look.empty()) json["look_at"] = known.look;
  return json;
}

}  // namespace

std::string faults_json() {
  Json json = Json::array();
  for (const MetadataFault& fault : all_metadata_faults()) json.push_back(fault_object(fault));
  for (const StepFault& fault : all_step_faults()) json.push_back(fault_object(fault));
  return json.dump(2) + "\n";
}

std::string explain_json(std::string_view subject) {
  const std::string_view id = bare_name(subject);
  Json json = Json::array();
  if (const Rule* rule = find_rule(id)) json.push_back(rule_object(*rule));
  if (const MetadataFault* fault = find_metadata_fault(id)) json.push_back(fault_object(*fault));
  if (const StepFault* fault = find_step_fault(id)) json.push_back(fault_object(*fault));
  for (const KnownName& known : names_called(subject)) json.push_back(name_object(known));
  return json.dump(2) + "\n";
}

std::string names_json() {
  Json json = Json::array();
  for (const KnownName& known : known_names()) json.push_back(name_object(known));
  return json.dump(2) + "\n";
}

std::string unknown_subject(std::string_view id) {
  std::vector<std::string> names = {"faults", "names"};
  for (const Rule& rule : all_rules()) names.emplace_back(rule.id);
  for (const MetadataFault& fault : all_metadata_faults()) names.emplace_back(fault.id);
  for (const StepFault& fault : all_step_faults()) names.emplace_back(fault.id);
  for (const KnownName& known : known_names()) names.push_back(known.name);
  std::ranges::sort(names);
  const auto again = std::ranges::unique(names);
  names.erase(again.begin(), again.end());
  const std::string near = did_you_mean(id, names);
  return "no rule, fault or other name '" + std::string(id) + "'" +
         (near.empty()
              ? "; attest explain, attest explain faults and attest explain names list them"
              : near);
}

std::string unknown_fault(std::string_view id) {
  std::vector<std::string> faults;
  for (const MetadataFault& fault : all_metadata_faults()) faults.emplace_back(fault.id);
  const std::vector<KnownName> others = names_called(id);
  std::string what;
  if (find_rule(id) != nullptr) what = ", which is a rule";
  if (!others.empty()) what = ", which is another name: " + std::string(others.front().kind);
  const std::string near = did_you_mean(id, faults);
  return "no fault of a call is named '" + std::string(id) + "'" + what +
         (near.empty() ? "; attest explain faults lists them" : near);
}

}  // namespace attest
