#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "fixtures/fixture_error.hpp"
#include "property_tests/mutants/detection.hpp"
#include "property_tests/mutants/explained.hpp"

namespace attest {
namespace {

using Json = nlohmann::json;

constexpr Outcome outcomes[] = {Outcome::killed, Outcome::survived, Outcome::equivalent,
                                Outcome::elsewhere, Outcome::not_run};

/// What names the mutant's mistake, and how the diagnosis did: read by people, not by add_recorded.
Json naming_of(const Trial& t) {
  const auto all = all_mutants();
  const auto at =
      std::find_if(all.begin(), all.end(), [&](const Mutant& one) { return one.name == t.mutant; });
  if (at == all.end()) return nullptr;
  return {{"about", name(diagnosable(*at).subject)},
          {"says_it", diagnosable(*at).names},
          {"named", name(named(*at, t))}};
}

Json json_of(const Trial& t) {
  return {{"kind", "mutant"},
          {"mutant", t.mutant},
          {"keys", t.keys},
          {"policy", t.policy},
          {"outcome", name(t.outcome)},
          {"killed_by", t.killed_by},
          {"oracles", t.oracles},
          {"numbers_by", t.numbers_by},
          {"cases", t.cases},
          {"numbers_cases", t.numbers_cases},
          {"seconds", t.seconds},
          {"says", t.says},
          {"diagnosis", t.diagnosis},
          {"hypothesis", naming_of(t)},
          {"honest_cases", t.honest_cases},
          {"false_failures", t.false_failures},
          {"false_failure", t.false_failure},
          {"shrunk_requests", t.shrunk_requests},
          {"shrunk_trials", t.shrunk_trials},
          {"shrunk_bytes", t.shrunk_bytes},
          {"shrunk", t.shrunk}};
}

Outcome outcome_from(const std::string& text) {
  for (const Outcome outcome : outcomes) {
    if (name(outcome) == text) return outcome;
  }
  throw std::invalid_argument("no outcome is called " + text);
}

Trial trial_from(const Json& j) {
  Trial t;
  t.mutant = j.at("mutant");
  t.keys = j.at("keys");
  t.policy = j.at("policy");
  t.outcome = outcome_from(j.at("outcome"));
  t.killed_by = j.at("killed_by");
  t.oracles = j.at("oracles").get<std::vector<std::string>>();
  t.numbers_by = j.at("numbers_by");
  t.cases = j.at("cases");
  t.numbers_cases = j.at("numbers_cases");
  t.seconds = j.at("seconds");
  t.says = j.at("says");
  t.diagnosis = j.at("diagnosis");
  t.honest_cases = j.at("honest_cases");
  t.false_failures = j.at("false_failures");
  t.false_failure = j.at("false_failure");
  t.shrunk_requests = j.at("shrunk_requests");
  t.shrunk_trials = j.at("shrunk_trials");
  t.shrunk_bytes = j.value("shrunk_bytes", std::int64_t{0});
  t.shrunk = j.at("shrunk");
  return t;
}

void add_line(const std::string& line, Detection& run) {
  const Json j = Json::parse(line);
  if (j.at("kind") == "mutant") {
    run.trials.push_back(trial_from(j));
    return;
  }
  for (const auto& command : j.at("commands")) run.commands.push_back(command);
  run.revision = j.at("revision");
  run.compiler = j.at("compiler");
  run.cpu = j.at("cpu");
  run.cores = j.at("cores");
}

}  // namespace

std::string detection_json(const Detection& run) {
  const Json header = {{"kind", "header"},         {"schema", 1},
                       {"commands", run.commands}, {"revision", run.revision},
                       {"compiler", run.compiler}, {"cpu", run.cpu},
                       {"cores", run.cores}};
  std::string text = header.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n';
  for (const Trial& trial : run.trials) {
    text += json_of(trial).dump(-1, ' ', false, Json::error_handler_t::replace) + '\n';
  }
  return text;
}

void add_recorded(std::string_view text, std::string_view file, Detection& run) {
  int number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string line(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (line.empty()) continue;
    try {
      add_line(line, run);
    } catch (const std::exception& error) {
      throw FixtureError(std::string(file) + ", line " + std::to_string(number) + ": " +
                         error.what());
    }
  }
}

}  // namespace attest
