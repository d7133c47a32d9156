#include "property_tests/report/names.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <variant>

#include "backends/faulty/amx_faults.hpp"
#include "backends/faulty/faults.hpp"
#include "backends/faulty/wrap_faults.hpp"
#include "backends/registry.hpp"
#include "contracts/call_fields.hpp"
#include "contracts/printable.hpp"
#include "contracts/rules.hpp"
#include "contracts/step_rules.hpp"
#include "contracts/verdict.hpp"
#include "memory/poison.hpp"
#include "property_tests/case_features.hpp"
#include "property_tests/diagnose.hpp"
#include "property_tests/generators.hpp"
#include "property_tests/large_kv.hpp"
#include "property_tests/misread/misreading.hpp"
#include "property_tests/null_oracles.hpp"
#include "property_tests/relations.hpp"
#include "property_tests/report/names_in_words.hpp"
#include "property_tests/report/severity_words.hpp"
#include "property_tests/report/tally.hpp"
#include "reference/oracles.hpp"

namespace attest {
namespace {

using Names = std::vector<KnownName>;

/// What a report may put in front of a name.
constexpr std::array<std::string_view, 12> prefixes = {
    "rule ",  "relation ", "oracle ", "rule:", "metadata:", "step:",
    "graph:", "relation:", "fault ",  "form ", "recipe ",   "engine "};

/// A table whose rows have a name and a sentence.
template <class Rows, class NameOf>
void add(Names& names, std::string_view kind, const Rows& rows, NameOf name_of) {
  for (const auto& row : rows) {
    names.push_back({kind, std::string(name_of(row)), std::string(row.says)});
  }
}

void add_hypotheses(Names& names) {
  for (const Hypothesis& one : all_hypotheses()) {
    names.push_back(
        {"hypothesis", std::string(one.id), std::string(one.says), std::string(one.look)});
  }
}

void add_step_rules(Names& names) {
  for (const StepRule& rule : step_rules()) {
    std::string says(rule.says);
    says.append(" (").append(name(rule.severity)).append("); otherwise: ").append(rule.why);
    names.push_back(
        {"step rule", std::string(rule.id), std::move(says), "", std::string(rule.source)});
  }
}

void add_verdicts(Names& names) {
  for (const Verdict verdict : all_verdicts) {
    names.push_back({"verdict", std::string(name(verdict)), std::string(meaning(verdict))});
  }
  for (const Severity severity :
       {Severity::wrong, Severity::fault, Severity::slow, Severity::policy}) {
    names.push_back({"severity", std::string(name(severity)), std::string(consequence(severity))});
  }
}

void add_large_kv(Names& names) {
  for (const Boundary& boundary : all_boundaries()) {
    names.push_back(
        {"feature", name(boundary), "of large-kv: an edge at which a 32-bit offset ends"});
  }
  for (const Side side : {Side::below, Side::straddling, Side::above}) {
    names.push_back({"feature", std::string(name(side)),
                     "of large-kv: where what a call touches lies in relation to an edge"});
  }
  for (const LargeKvBy by :
       {LargeKvBy::page_ids, LargeKvBy::strides, LargeKvBy::view, LargeKvBy::decoys}) {
    names.push_back({"feature", std::string(name(by)),
                     "of large-kv: what takes the pool past an edge (docs/large_kv.md)"});
  }
  for (const Dtype dtype :
       {Dtype::f32, Dtype::f16, Dtype::bf16, Dtype::fp8_e4m3fn, Dtype::fp8_e4m3fnuz}) {
    names.push_back({"feature", std::string(name(dtype)), "of large-kv: the type of K and V"});
  }
}

/// "causal_one_too_long" of "faulty-causal_one_too_long.unified@cpu".
std::string fault_of(std::string_view backend) {
  constexpr std::string_view prefix = "faulty-";
  if (backend.starts_with(prefix)) backend.remove_prefix(prefix.size());
  return std::string(backend.substr(0, backend.find('.')));
}

std::string source_of(std::string_view id) {
  if (const KernelFault* const fault = find_kernel_fault(id)) return std::string(fault->source);
  for (const AmxFault& fault : all_amx_faults()) {
    if (fault.id == id) return std::string(fault.source);
  }
  return "";
}

/// Signatures by argument.
using Arguments = std::map<std::string, std::vector<std::string>>;

template <std::size_t... I>
Arguments arguments_of(std::index_sequence<I...> /*alternatives of Call*/) {
  Arguments arguments;
  const auto note = [&](Signature signature, const auto&... field) {
    (arguments[std::string(field.key)].emplace_back(name(signature)), ...);
  };
  (std::apply([&](const auto&... field) { note(static_cast<Signature>(I), field...); },
              call_fields<std::variant_alternative_t<I, Call>>),
   ...);
  return arguments;
}

/// The kernels' own arguments: what a finding names.
void add_arguments(Names& names) {
  const Arguments signatures_of =
      arguments_of(std::make_index_sequence<std::variant_size_v<Call>>());
  for (const auto& [argument, signatures] : signatures_of) {
    std::vector<std::string> rules;
    for (const Rule& rule : all_rules()) {
      if (rule.id.starts_with(argument + ".")) rules.emplace_back(rule.id);
    }
    names.push_back({"argument", argument,
                     "of " + joined(signatures) +
                         (rules.empty() ? "" : "; rules about it alone: " + joined(rules))});
  }
}

void add_backends(Names& names, std::span<const Backend* const> backends) {
  std::set<std::string> faults;
  for (const Backend* const backend : backends) {
    if (!is_deliberate_fault(*backend)) continue;
    const std::string id = fault_of(backend->name());
    if (!faults.insert(id).second) continue;
    names.push_back({"kernel fault", id, std::string(backend->says()), "", source_of(id)});
  }
  for (const Backend* const backend : backends) {
    names.push_back({"backend", std::string(backend->name()), std::string(backend->says())});
  }
}

Names every_name() {
  Names names;
  const auto by_name = [](const auto& row) { return row.name; };
  const auto by_id = [](const auto& row) { return row.id; };
  add_step_rules(names);
  add(names, "oracle", all_oracles(), by_name);
  add(names, "null oracle", all_null_oracles(), by_id);
  add_hypotheses(names);
  add(names, "feature", all_case_features(), by_name);
  add(names, "relation", all_relations(), by_id);
  add_verdicts(names);
  for (const NameInWords& word : names_in_words()) {
    names.push_back(
        {word.kind, std::string(word.name), std::string(word.says), std::string(word.look)});
  }
  add_arguments(names);
  add_large_kv(names);
  add_backends(names, all_backends());
  return names;
}

bool is_number(std::string_view text) {
  return !text.empty() &&
         std::ranges::all_of(text, [](unsigned char c) { return std::isdigit(c) != 0; });
}

/// The name under which the table has a word with a number or a dtype in it.
std::string_view pattern_of(std::string_view text) {
  constexpr std::string_view page = "page ", split = "split ", kv = " kv";
  if (text.starts_with("explains ") && (text.ends_with(" rows") || text.ends_with(" row"))) {
    return "explains N rows";
  }
  if (text.starts_with(page) && is_number(text.substr(page.size()))) return "page N";
  if (text.starts_with(split) && is_number(text.substr(split.size()))) return "split N";
  const bool is_kv = text.ends_with(kv) && dtype_from_name(text.substr(0, text.size() - kv.size()));
  return is_kv ? "DTYPE kv" : text;
}

}  // namespace

const std::vector<KnownName>& known_names() {
  static const Names names = every_name();
  return names;
}

std::string_view bare_name(std::string_view text) {
  for (const std::string_view prefix : prefixes) {
    if (text.starts_with(prefix)) return text.substr(prefix.size());
  }
  return text;
}

std::vector<KnownName> names_called(std::string_view text) {
  const std::string_view wanted = pattern_of(bare_name(text));
  const std::string without_faulty = wanted.starts_with("faulty-") ? fault_of(wanted) : "";
  std::vector<KnownName> found;
  for (const KnownName& known : known_names()) {
    const bool is_fault = known.kind == "kernel fault" && known.name == without_faulty;
    if (known.name == wanted || is_fault) found.push_back(known);
  }
  // Thousands, made of few parts: they can be asked for and are not listed.
  for (const Misreading& one : all_misreadings()) {
    if (one.id == wanted) found.push_back({"misreading", one.id, one.says, std::string(one.look)});
  }
  return found;
}

}  // namespace attest
