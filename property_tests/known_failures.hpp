#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "property_tests/report/result.hpp"

namespace attest {

/// A failure that somebody has reported and that a run need not tell again.
struct KnownFailure {
  std::string name;     ///< of the entry, in messages
  std::string issue;    ///< link to where it is dealt with
  std::string expires;  ///< "2027-01-31", the last day that it holds
  // Which cases: every one that is given must fit.
  std::string backend;  ///< full name, or a beginning that ends before '.', '-' or '@'
  std::string problem;  ///< a part of the problem in words
  std::vector<std::string> features;  ///< words of the coverage line (feature_words), all of them
  // How they fail.
  std::string kind;  ///< oracle, rule or verdict (failure_kind); empty = in any way
};

/// The list of a run. Counts what it meets, from any thread.
class KnownFailures {
 public:
  /// {"schema": 1, "known": [...]}. \throws FixtureError naming file, place and value
  KnownFailures(std::string_view text, std::string_view file);
  /// \throws the same, and for a file that does not read; a pipe may be one
  static std::unique_ptr<KnownFailures> from_file(const std::filesystem::path& file);

  /// "known failure <name> expired on <day>: <issue>" of each whose day is before `today`.
  std::vector<std::string> expired(std::string_view today) const;

  /// One sentence for each entry that means none of `backends` by name and nearly one of them: of
  /// another machine's backend nothing is said.
  std::vector<std::string> misspelt(std::span<const std::string_view> backends) const;

  /// The entry that says `result` fails as it does; nullptr = none. Counts the case for every entry
  /// that it fits, whether it failed or not.
  const KnownFailure* meet(const CaseResult& result);

  /// Entries of which cases were judged and none failed as they say: fixed, never right, or failing
  /// in another way, which is said. One sentence each.
  std::vector<std::string> contradicted() const;

  const std::vector<KnownFailure>& entries() const { return entries_; }

 private:
  struct Count {
    std::int64_t judged = 0, failed = 0;
    std::map<std::string, std::int64_t> otherwise;  ///< failures of other kinds
  };
  std::vector<KnownFailure> entries_;
  mutable std::mutex mutex_;
  std::vector<Count> counts_;
};

/// The day, in UTC.
std::string today();

}  // namespace attest
