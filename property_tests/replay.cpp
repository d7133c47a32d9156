#include "property_tests/replay.hpp"

#include <algorithm>
#include <stdexcept>

#include "backends/plugin/plugin_host.hpp"
#include "backends/registry.hpp"
#include "contracts/verdict.hpp"
#include "fixtures/files_below.hpp"
#include "fixtures/fixture.hpp"
#include "fixtures/read_file.hpp"
#include "property_tests/case_in_file.hpp"
#include "property_tests/generators.hpp"
#include "property_tests/in_flight.hpp"
#include "property_tests/save_failure.hpp"

namespace attest {
namespace {

namespace fs = std::filesystem;

std::vector<const Backend*> of_signature(const std::vector<const Backend*>& backends,
                                         Signature signature) {
  std::vector<const Backend*> kept;
  for (const Backend* backend : backends) {
    if (backend->capabilities().signature == signature) kept.push_back(backend);
  }
  return kept;
}

std::vector<const Backend*> honest_here(Signature signature) {
  const auto all = of_signature(backends_to_run(""), signature);
  std::vector<const Backend*> here;
  std::copy_if(all.begin(), all.end(), std::back_inserter(here),
               [](const Backend* backend) { return backend->available().yes; });
  return here.empty() ? all : here;
}

/// A fixture whose fault is neither in the call nor in the metadata: its backend is the faulty one.
bool backend_is_the_fault(const Fixture& fixture) {
  return fixture.faulty && fixture.fault.empty() && !fixture.call;
}

/// Backends for one side. A named one is kept though it may be unavailable: what is named must run.
std::vector<const Backend*> backends_for(const Fixture& fixture, bool with_fault,
                                         const std::filesystem::path& file, const ReplayPlan& plan,
                                         Signature signature) {
  if (!plan.backend.empty()) return of_signature(backends_to_run(plan.backend), signature);
  if (fixture.backend.empty() || (backend_is_the_fault(fixture) && !with_fault)) {
    return honest_here(signature);
  }
  try {
    return of_signature(backends_to_run(fixture.backend), signature);
  } catch (const std::invalid_argument& error) {
    throw FixtureError(file.string() + ": /backend: " + error.what());
  }
}

/// A library is code, which a file must not bring: the person who replays it names it too.
/// \throws FixtureError with what to say
void require_named_plugins(const Fixture& fixture, const std::filesystem::path& file,
                           const ReplayPlan& plan) {
  if (!plan.backend.empty()) return;
  for (const std::string_view part : split_at_commas(fixture.backend)) {
    if (!names_a_plugin(part)) continue;
    const bool named = std::ranges::any_of(plan.plugins, [&](const std::string& plugin) {
      return canonical_plugin(plugin) == canonical_plugin(part);
    });
    if (named) continue;
    throw FixtureError(
        file.string() + ": /backend: \"" + std::string(part) +
        "\" is a library, which a fixture alone does not load; if you trust it: " + plan.program +
        " replay " + shell_word(file.string()) + " --plugin " + shell_word(part));
  }
}

std::string_view word_of(RulesMode mode) {
  switch (mode) {
    case RulesMode::enforce:
      return "enforced";
    case RulesMode::report:
      return "reported";
    case RulesMode::off:
      return "off";
  }
  return "";
}

/// Why the judgement is not what the fixture promises; empty = it is.
std::string unexpected(const Judgement& judgement, const Expectation& expectation, Verdict expected,
                       RulesMode mode) {
  if (judgement.verdict != expected) {
    return "expected " + std::string(name(expected)) + ", got " +
           std::string(name(judgement.verdict)) +
           (judgement.reason.empty() ? "" : " (" + judgement.reason + ")");
  }
  if (mode == RulesMode::off) return "";
  for (const std::string& rule : expectation.rules) {
    const bool found = std::any_of(judgement.findings.begin(), judgement.findings.end(),
                                   [&](const Finding& finding) { return finding.rule == rule; });
    if (!found) return "expected a finding of " + rule + ", which did not fire";
  }
  return "";
}

struct FixtureSide {
  bool with_fault;
  const Expectation* expectation;
};

std::vector<FixtureSide> sides_of(const Fixture& fixture) {
  std::vector<FixtureSide> sides;
  if (fixture.faulty) sides.push_back({true, &*fixture.faulty});
  sides.push_back({false, &fixture.fixed});
  return sides;
}

std::string side_name(const Fixture& fixture, const FixtureSide& side) {
  if (!fixture.faulty) return "";
  return side.with_fault ? "with the fault" : "without the fault";
}

std::string title_of(const Fixture& fixture) {
  return fixture.name + (fixture.evidence == Evidence::modelled ? " (modelled)" : "");
}

/// The steps before a trace's last one, each as a fixture of its own that must pass.
std::vector<Fixture> earlier_steps(const Fixture& fixture) {
  std::vector<Fixture> steps;
  for (std::size_t i = 0; i + 1 < fixture.trace.size(); ++i) {
    Fixture step = fixture;
    step.name += ", step " + std::to_string(i + 1);
    step.trace = {fixture.trace[i]};
    step.call.reset();
    step.fault.clear();
    step.faulty.reset();
    step.fixed = {};
    steps.push_back(std::move(step));
  }
  return steps;
}

Verdict promised(const FixtureSide& side, RulesMode mode) {
  return mode == RulesMode::enforce ? side.expectation->enforced : side.expectation->reported;
}

/// Names the side and the rules mode, and what the fixture promises of them.
CaseResult result_of(const Fixture& fixture, const Case& c, const FixtureSide& side,
                     RulesMode mode) {
  CaseResult result{.name = title_of(fixture),
                    .seed = c.seed,
                    .problem = in_words(c),
                    .features = features_of(c),
                    .judgement = {},
                    .side = side_name(fixture, side),
                    .rules = std::string(word_of(mode)),
                    .story = fixture.story};
  if (!result.side.empty()) result.name += ", " + result.side;
  result.name += ", rules " + result.rules;
  result.expected = promised(side, mode);
  return result;
}

CaseResult judge_side(const Fixture& fixture, const Case& c, const FixtureSide& side,
                      RulesMode mode, const Backend& backend, const ReplayPlan& plan) {
  InFlight in_flight("");
  JudgeOptions options;
  options.rules = mode;
  options.run = plan.run;
  options.program = plan.program;
  options.time_limit = plan.time_limit;
  options.isolate = plan.isolate;
  options.before_launch = [&](const std::string& repro) { in_flight.now(repro); };
  CaseResult result = result_of(fixture, c, side, mode);
  result.judgement = judge(c, backend, options);
  const bool replaced = !plan.backend.empty() && result.expected != Verdict::unsupported;
  if (replaced && result.judgement.verdict == Verdict::unsupported) {
    result.applies = Applies::unsupported;
    return result;
  }
  result.unexpected = unexpected(result.judgement, *side.expectation, promised(side, mode), mode);
  return result;
}

/// A result that says nothing of the backends which were asked for.
CaseResult not_judged(const Fixture& fixture, const Case& c, const FixtureSide& side,
                      RulesMode mode, const ReplayPlan& plan) {
  CaseResult result = result_of(fixture, c, side, mode);
  result.judgement.repro = plan.program + " replay " + shell_word(c.origin);
  if (!plan.backend.empty()) result.judgement.repro += " --backend " + shell_word(plan.backend);
  result.judgement.verdict = Verdict::unsupported;
  result.judgement.backend = plan.backend.empty() ? "any" : plan.backend;
  return result;
}

/// The fault of the fixture is a kernel's, and another kernel was asked for.
bool is_fault_of_another(const Fixture& fixture, const FixtureSide& side, const Backend& backend,
                         const ReplayPlan& plan) {
  return side.with_fault && !plan.backend.empty() && fixture.backend.starts_with("faulty-") &&
         !is_deliberate_fault(backend);
}

CaseResult without_backend(const Fixture& fixture, const Case& c, const FixtureSide& side,
                           RulesMode mode, const ReplayPlan& plan) {
  CaseResult result = not_judged(fixture, c, side, mode, plan);
  result.judgement.reason = "no selected backend has the signature " + fixture.signature;
  const bool runs = std::ranges::any_of(all_backends(), [&](const Backend* backend) {
    return name(backend->capabilities().signature) == fixture.signature;
  });
  // A signature that no backend runs is checked with the corpus; there is nothing to replay.
  if (!runs) result.expected = Verdict::unsupported;
  if (runs) result.applies = Applies::other_signature;
  return result;
}

void judge_on_backends(const Fixture& fixture, const FixtureSide& side,
                       const std::filesystem::path& file, const ReplayPlan& plan,
                       const std::function<void(const CaseResult&)>& each) {
  std::vector<RulesMode> modes = {RulesMode::enforce, RulesMode::report};
  if (plan.rules) modes = {*plan.rules};
  const Case c = case_in(file, fixture, side.with_fault);
  const auto backends = backends_for(fixture, side.with_fault, file, plan, c.signature);
  for (const RulesMode mode : modes) {
    if (backends.empty()) each(without_backend(fixture, c, side, mode, plan));
  }
  for (const Backend* backend : backends) {
    for (const RulesMode mode : modes) {
      if (plan.stop != nullptr && plan.stop->load()) return;
      if (is_fault_of_another(fixture, side, *backend, plan)) {
        CaseResult result = not_judged(fixture, c, side, mode, plan);
        result.judgement.backend = backend->name();
        result.judgement.reason = "the fault is one of " + fixture.backend;
        result.applies = Applies::fault_of_another_kernel;
        each(result);
        continue;
      }
      each(judge_side(fixture, c, side, mode, *backend, plan));
    }
  }
}

/// Links that lead nowhere too: reading them says why.
bool is_fixture_file(const fs::directory_entry& entry) {
  std::error_code none;
  return !entry.is_directory(none) && entry.path().extension() == ".json";
}

}  // namespace

std::vector<fs::path> fixture_files(const std::vector<fs::path>& paths, const UnreadSink& unread) {
  std::vector<fs::path> files;
  for (const fs::path& path : paths) {
    std::error_code none;
    if (!fs::is_directory(path, none)) {
      files.push_back(path);
      continue;
    }
    bool whole = true;
    const auto note = [&](const UnreadInput& folder) {
      whole = false;
      report_unread(unread, folder);
    };
    const std::vector<fs::path> inside = files_below(path, is_fixture_file, note);
    if (inside.empty() && whole)
      throw FixtureError(path.string() + ": holds no .json file (attest check reads .jsonl)");
    files.insert(files.end(), inside.begin(), inside.end());
  }
  return files;
}

void replay_file(const std::filesystem::path& file, const ReplayPlan& plan,
                 const std::function<void(const CaseResult&)>& each) {
  const Fixture fixture = load_fixture(file);
  require_named_plugins(fixture, file, plan);
  // Both sides refuse what cannot be judged before anything runs.
  for (const FixtureSide& side : sides_of(fixture)) case_in(file, fixture, side.with_fault);
  std::vector<Fixture> steps = earlier_steps(fixture);
  steps.push_back(fixture);
  for (const Fixture& step : steps) {
    for (const FixtureSide& side : sides_of(step)) judge_on_backends(step, side, file, plan, each);
  }
}

bool says_something(const CaseResult& result) { return result.applies == Applies::yes; }

int replay_exit_code(const std::vector<CaseResult>& results) {
  if (std::ranges::none_of(results, says_something)) return exit_expectation;
  int code = 0;
  for (const CaseResult& result : results) {
    if (result.unexpected.empty()) continue;
    if (result.judgement.verdict != Verdict::unavailable) return exit_expectation;
    code = exit_code(Verdict::unavailable);
  }
  return code;
}

}  // namespace attest
