#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "property_tests/report/machine.hpp"
#include "property_tests/report/result.hpp"
#include "property_tests/report/tally.hpp"

namespace attest {

inline constexpr int record_schema = 1;

/// First line of a run record: everything needed to run it again and to know where it ran.
struct RecordHeader {
  std::string command;                 ///< "run", "replay", "check"
  std::vector<std::string> arguments;  ///< as given
  std::uint64_t seed = 0;
  std::int64_t first = 0, count = 0;
  std::string shard = "1/1";
  std::string rules = "enforce";
  std::string required;               ///< ATTEST_REQUIRE, or empty
  std::vector<std::string> backends;  ///< names, in order
  Machine machine;
};

/// The run record, one JSON object a line (docs/cli.md, "Run record"): {"kind": "header"}, then
/// {"kind": "case"} as they are judged, then {"kind": "summary"}. Each without the newline.
std::string header_json(const RecordHeader& header);
std::string case_json(const CaseResult& result);
/// `unread`: files of found failures that do not read; each has a {"kind": "unread"} line.
std::string summary_json(std::span<const BackendTally> tallies, int exit_code, bool interrupted,
                         std::int64_t unread = 0);
std::string replay_summary_json(std::span<const CaseResult> results, int exit_code,
                                bool interrupted);

/// Version, revision, compiler and machine, as properties of a JUnit suite; and those of a run.
std::map<std::string, std::string> build_properties();
std::map<std::string, std::string> run_properties(const RecordHeader& header);

/// A file (or an open descriptor) that takes one line at a time. Every line is written whole at
/// once, and what a full disk took of one is taken back, so a run that was killed or had no room
/// leaves only whole lines.
class RecordFile {
 public:
  /// Creates or truncates `path`; "-" is standard output. A regular file is locked: two runs that
  /// write one record would tear each other's lines. \throws std::system_error naming it, also when
  /// another process holds it
  explicit RecordFile(const std::string& path);
  RecordFile(const RecordFile&) = delete;
  RecordFile& operator=(const RecordFile&) = delete;
  ~RecordFile();

  /// \throws std::system_error naming the file, OutputClosed
  void line(const std::string& json);

 private:
  std::string path_;
  int fd_ = -1;
  bool owned_ = false;
};

}  // namespace attest
