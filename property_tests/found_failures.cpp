#include "property_tests/found_failures.hpp"

#include <algorithm>

#include "contracts/printable.hpp"
#include "fixtures/fixture.hpp"
#include "fixtures/fixture_error.hpp"
#include "property_tests/generators.hpp"
#include "property_tests/in_flight.hpp"
#include "property_tests/replay.hpp"
#include "property_tests/run_devices.hpp"
#include "property_tests/save_failure.hpp"

namespace attest {
namespace {

const Backend* backend_of(const RunPlan& plan, const Fixture& fixture) {
  const auto at = std::find_if(plan.backends.begin(), plan.backends.end(), [&](const Backend* one) {
    return one->selector() == fixture.backend;
  });
  return at == plan.backends.end() ? nullptr : *at;
}

/// What save_failure adds to the name of a fixture of such a run.
bool was_saved_in(RulesMode rules, const std::string& name) {
  if (name.ends_with("-rules-report")) return rules == RulesMode::report;
  if (name.ends_with("-rules-off")) return rules == RulesMode::off;
  return rules == RulesMode::enforce;
}

CaseResult judge_again(const RunPlan& plan, const Backend& backend, const Fixture& fixture,
                       const std::filesystem::path& file) {
  Case c = case_of(fixture, fixture.faulty.has_value());
  c.origin = file.string();
  InFlight in_flight("");
  JudgeOptions options;
  options.rules = plan.rules;
  options.run = plan.run;
  options.program = plan.program;
  options.time_limit = plan.time_limit;
  options.before_launch = [&](const std::string& repro) { in_flight.now(repro); };
  return {.name = fixture.name,
          .seed = c.seed,
          .problem = in_words(c),
          .features = features_of(c),
          .judgement = judge(c, backend, options),
          .fixture = file.string()};
}

}  // namespace

void judge_found_failures(const RunPlan& plan, const std::function<void(const FoundAgain&)>& each) {
  std::error_code none;
  if (!std::filesystem::is_directory(plan.out, none)) return;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(plan.out)) {
    if (entry.is_regular_file(none) && entry.path().extension() == ".json") {
      files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  for (const std::filesystem::path& file : files) {
    if (plan.stop != nullptr && plan.stop->load()) return;
    std::optional<Fixture> fixture;
    try {
      fixture = load_fixture(file);
    } catch (const FixtureError&) {
      continue;  // a record or a report beside them
    }
    const Backend* const backend = backend_of(plan, *fixture);
    if (backend == nullptr || !was_saved_in(plan.rules, fixture->name)) continue;
    if (!can_run(plan, *backend)) continue;
    FoundAgain found{.file = file, .result = judge_again(plan, *backend, *fixture, file)};
    found.still_fails = is_failure(found.result.judgement.verdict);
    each(found);
  }
}

std::string in_words(const FoundAgain& found) {
  const Judgement& judgement = found.result.judgement;
  const std::string file = printable(found.file.string());
  if (judgement.verdict == Verdict::pass) {
    return "found     no longer fails: " + file + ", which can be deleted\n";
  }
  if (!found.still_fails) {
    return "found     not judged (" + std::string(name(judgement.verdict)) +
           (judgement.reason.empty() ? "" : ": " + judgement.reason) + "): " + file + "\n";
  }
  const std::string known =
      found.result.known.empty() ? "" : "known (" + printable(found.result.known) + "), ";
  return "found     " + known + "still fails by " + failure_kind(judgement) + ": " + file + ": " +
         found.result.problem + "\n";
}

}  // namespace attest
