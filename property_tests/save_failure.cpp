#include "property_tests/save_failure.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <system_error>

#include "fixtures/fixture.hpp"
#include "fixtures/fixture_error.hpp"
#include "property_tests/generators.hpp"
#include "property_tests/report/atomic_file.hpp"
#include "property_tests/report/numbers.hpp"
#include "property_tests/smaller_parts.hpp"

namespace attest {
namespace {

using Clock = std::chrono::steady_clock;

std::vector<std::string> rejecting_rules(const Judgement& judgement) {
  std::vector<std::string> rules;
  for (const Finding& finding : judgement.findings) {
    const bool known = std::find(rules.begin(), rules.end(), finding.rule) != rules.end();
    if (rejects(finding.severity) && !known) rules.push_back(finding.rule);
  }
  return rules;
}

/// Two plugins may call their kernels alike: their files tell them apart.
std::string label_of(const Backend& backend) {
  if (backend.selector() == backend.name()) return std::string(backend.name());
  std::uint32_t hash = 2166136261U;  // FNV-1a
  for (const char c : backend.selector()) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  }
  std::array<char, 9> digits{};
  std::snprintf(digits.data(), digits.size(), "%08x", hash);
  return std::filesystem::path(backend.selector()).filename().string() + " " + digits.data();
}

std::string_view suffix_of(RulesMode rules) {
  switch (rules) {
    case RulesMode::report:
      return "-rules-report";
    case RulesMode::off:
      return "-rules-off";
    case RulesMode::enforce:
      break;
  }
  return "";
}

/// The failure of the same backend that the file holds, where it is smaller than `c`.
std::optional<Case> smaller_in(const std::filesystem::path& file, const Case& c,
                               std::string_view backend) {
  std::error_code none;
  if (!std::filesystem::exists(file, none)) return std::nullopt;
  try {
    const Fixture saved = load_fixture(file);
    if (saved.backend != backend) return std::nullopt;
    Case kept = case_of(saved, saved.faulty.has_value());
    if (kept.call.has_value() == c.call.has_value() && size_of(kept) < size_of(c)) return kept;
    return std::nullopt;
  } catch (const FixtureError&) {
    return std::nullopt;  // what is no fixture any more is mended by the new one
  }
}

}  // namespace

std::string in_words(const Case& c) {
  std::string text = describe(c.problem) + ", recipe " + std::string(name(c.recipe));
  if (!c.fault.empty()) text += ", with the fault " + c.fault;
  return text;
}

bool fails_alike(const CaseResult& result, const Case& other, const Backend& backend,
                 const JudgeOptions& options) {
  JudgeOptions quiet = options;
  quiet.before_launch = nullptr;
  quiet.diagnose = false;
  const Judgement judgement = judge(other, backend, quiet);
  return judgement.verdict == result.judgement.verdict &&
         failure_kind(judgement) == failure_kind(result.judgement);
}

Case shrink_failure(CaseResult& result, const Case& c, const Backend& backend,
                    const JudgeOptions& options, const ShrinkLimits& limits) {
  if (limits.budget.count() == 0 || result.judgement.verdict == Verdict::hung) return c;
  const auto deadline = Clock::now() + limits.budget;
  JudgeOptions trial_options = options;
  trial_options.time_limit = std::min(options.time_limit, limits.budget);
  const Shrunk shrunk = shrink(c, limits.max_trials, [&](const Case& candidate) {
    if (Clock::now() > deadline || (limits.stop && limits.stop())) return false;
    return fails_alike(result, candidate, backend, trial_options);
  });
  if (shrunk.steps == 0) return c;
  result.shrunk = counted(shrunk.trials, "trial") + ", " + counted(shrunk.steps, "step") + ": " +
                  in_words(shrunk.best);
  return shrunk.best;
}

void save_failure(CaseResult& result, const Case& c, const Backend& backend, RulesMode rules,
                  const std::filesystem::path& folder,
                  const std::function<bool(const Case&)>& as_the_new_one) {
  Fixture fixture =
      fixture_of(c, label_of(backend), result.judgement.verdict, rejecting_rules(result.judgement));
  fixture.backend = backend.selector();
  std::error_code error;
  if (!folder.empty()) std::filesystem::create_directories(folder, error);
  if (error) throw std::system_error(error, "--out " + folder.string() + ": making it");
  const std::string stem = fixture.name;
  std::filesystem::path path;
  for (int number = 1;; ++number) {
    fixture.name = stem + (number == 1 ? "" : "-" + std::to_string(number));
    fixture.name += suffix_of(rules);
    path = folder / (fixture.name + ".json");
    const std::optional<Case> kept = smaller_in(path, c, fixture.backend);
    if (!kept) break;
    if (!as_the_new_one(*kept)) continue;
    result.fixture = path.string();
    result.shrunk = "by an earlier run: " + in_words(*kept);
    return;
  }
  // A link in a folder of somebody else's would have the fixture written elsewhere.
  if (std::filesystem::is_symlink(path, error)) std::filesystem::remove(path);
  write_atomically(path, to_json(fixture));
  result.fixture = path.string();
}

}  // namespace attest
