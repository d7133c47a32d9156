#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "backends/backend.hpp"
#include "fixtures/unread_input.hpp"
#include "property_tests/case.hpp"
#include "property_tests/judge.hpp"
#include "property_tests/report/result.hpp"

namespace attest {

/// A failure that an earlier run saved.
struct FoundFailure {
  std::filesystem::path file;
  std::string name;  ///< of its fixture
  const Backend* backend = nullptr;
  Case c;  ///< the side that failed
};

struct FoundFailures {
  std::vector<FoundFailure> all;    ///< in the order of their files' names
  std::vector<UnreadInput> unread;  ///< files that should be fixtures and do not read
};

/// What runs of these backends in this rules mode saved in `folder`. Files that are not called
/// .json and fixtures of other backends are passed over; a folder that is not there holds none.
/// \throws std::system_error naming the folder, where it cannot be listed
FoundFailures read_found(const std::filesystem::path& folder,
                         std::span<const Backend* const> backends, RulesMode rules);

/// Refuses what failures cannot be saved in: a file, a link in circles or to nowhere.
/// \throws std::system_error "--out found: Not a directory"
void require_folder(const std::filesystem::path& folder);

/// "found     still fails by hard: fixtures/found/x.json: decode 1 req ..." or that it passes now,
/// one line. \pre result.found
std::string found_line(const CaseResult& result);

}  // namespace attest
