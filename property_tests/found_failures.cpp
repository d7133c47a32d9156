#include "property_tests/found_failures.hpp"

#include <algorithm>
#include <optional>
#include <system_error>

#include "backends/plugin/plugin_host.hpp"
#include "contracts/printable.hpp"
#include "fixtures/fixture.hpp"
#include "fixtures/fixture_error.hpp"
#include "property_tests/case_in_file.hpp"

namespace attest {
namespace {

namespace fs = std::filesystem;

const Backend* backend_of(std::span<const Backend* const> backends, const Fixture& fixture) {
  const std::string wanted =
      names_a_plugin(fixture.backend) ? canonical_plugin(fixture.backend) : fixture.backend;
  const auto at = std::find_if(backends.begin(), backends.end(),
                               [&](const Backend* one) { return one->selector() == wanted; });
  return at == backends.end() ? nullptr : *at;
}

/// What save_failure adds to the name of a fixture of such a run.
bool was_saved_in(RulesMode rules, const std::string& name) {
  if (name.ends_with("-rules-report")) return rules == RulesMode::report;
  if (name.ends_with("-rules-off")) return rules == RulesMode::off;
  return rules == RulesMode::enforce;
}

[[noreturn]] void fail(const fs::path& folder, const std::error_code& error,
                       const std::string& more = "") {
  throw std::system_error(error, "--out " + folder.string() + more);
}

/// Everything called .json that is no folder: of a link that leads nowhere it is said.
std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  fs::directory_iterator at(folder, error);
  for (; !error && at != fs::directory_iterator(); at.increment(error)) {
    std::error_code none;
    if (at->path().extension() == ".json" && !at->is_directory(none)) files.push_back(at->path());
  }
  if (error) fail(folder, error, ": listing it");
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

void require_folder(const fs::path& folder) {
  std::error_code error;
  const fs::file_status status = fs::status(folder, error);
  if (fs::is_directory(status)) return;
  if (fs::exists(status)) fail(folder, std::make_error_code(std::errc::not_a_directory));
  std::error_code none;
  const bool link = fs::is_symlink(fs::symlink_status(folder, none));
  if (link) fail(folder, error, ": a link that leads to no folder");
  // It is made with the first failure, where the folders above it are some.
  if (error != std::errc::no_such_file_or_directory) fail(folder, error);
}

FoundFailures read_found(const fs::path& folder, std::span<const Backend* const> backends,
                         RulesMode rules) {
  require_folder(folder);
  FoundFailures found;
  std::error_code none;
  if (!fs::exists(folder, none)) return found;
  for (const fs::path& file : files_in(folder)) {
    try {
      const Fixture fixture = load_fixture(file);
      const Backend* const backend = backend_of(backends, fixture);
      if (backend == nullptr || !was_saved_in(rules, fixture.name)) continue;
      Case c = case_in(file, fixture, fixture.faulty.has_value());
      found.all.push_back({file, fixture.name, backend, std::move(c)});
    } catch (const FixtureError& error) {
      // Of the others it is told all the same.
      std::string reason = error.what();
      const std::string place = printable(file.string()) + ": ";
      if (reason.starts_with(place)) reason.erase(0, place.size());
      found.unread.push_back({file.string(), 0, std::move(reason)});
    }
  }
  return found;
}

std::string found_line(const CaseResult& result) {
  const Judgement& judgement = result.judgement;
  const std::string file = printable(result.fixture);
  if (judgement.verdict == Verdict::pass) {
    return "found     no longer fails: " + file + ", which can be deleted\n";
  }
  if (!is_failure(judgement.verdict)) {
    return "found     not judged (" + std::string(name(judgement.verdict)) +
           (judgement.reason.empty() ? "" : ": " + printable(judgement.reason)) + "): " + file +
           "\n";
  }
  const std::string known =
      result.known.empty() ? "" : "known (" + printable(known_in_words(result)) + "), ";
  return "found     " + known + "still fails by " + printable(failure_kind(judgement)) + ": " +
         file + ": " + printable(result.problem) + "\n";
}

}  // namespace attest
