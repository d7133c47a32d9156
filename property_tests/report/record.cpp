#include "property_tests/report/record.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <nlohmann/json.hpp>
#include <system_error>

#include "property_tests/report/build_info.hpp"
#include "property_tests/report/console.hpp"

namespace attest {
namespace {

using Json = nlohmann::ordered_json;

bool is_regular(int fd) {
  struct stat of{};
  return ::fstat(fd, &of) == 0 && S_ISREG(of.st_mode);
}

/// JSON has no NaN and no infinity; they become the words.
Json number(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

/// Text from kernels and exceptions may hold any bytes: those that are not UTF-8 are replaced.
std::string dumped(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json finding_object(const Finding& finding) {
  return {{"rule", finding.rule}, {"severity", name(finding.severity)}, {"where", finding.where},
          {"got", finding.got},   {"expected", finding.expected},       {"more", finding.more}};
}

Json oracle_object(const OracleResult& oracle) {
  Json json = {{"oracle", oracle.oracle},
               {"passed", oracle.passed},
               {"worst", number(oracle.worst)},
               {"failures", oracle.failures},
               {"compared", oracle.compared}};
  if (!oracle.passed) {
    json["row"] = oracle.row;
    json["head"] = oracle.head;
    json["element"] = oracle.element;
    json["detail"] = oracle.detail;
  }
  return json;
}

Json tally_object(const BackendTally& tally) {
  Json json = {{"backend", tally.backend},
               {"engine", tally.engine},
               {"version", tally.version},
               {"planned", tally.planned},
               {"cases", tally.cases()}};
  for (const Verdict verdict : all_verdicts)
    json[std::string(name(verdict))] = tally.count(verdict);
  json["known"] = tally.known;
  json["found"] = tally.found;
  json["found_failed"] = tally.found_failed;
  json["found_not_judged"] = tally.found_silent;
  json["seconds"] = number(tally.seconds);
  json["worst_error_over_bound"] = number(tally.worst_over_bound);
  json["worst_z"] = number(tally.worst_z);
  json["worst_case"] = tally.worst_case;
  json["features"] = tally.features;
  json["failure_kinds"] = tally.failure_kinds;
  json["note"] = tally.note;
  return json;
}

}  // namespace

std::string header_json(const RecordHeader& header) {
  const BuildInfo& build = build_info();
  const Json json = {{"kind", "header"},
                     {"schema", record_schema},
                     {"command", header.command},
                     {"arguments", header.arguments},
                     {"version", build.version},
                     {"revision", build.revision},
                     {"compiler", build.compiler},
                     {"flags", build.flags},
                     {"seed", header.seed},
                     {"first", header.first},
                     {"count", header.count},
                     {"shard", header.shard},
                     {"rules", header.rules},
                     {"required", header.required},
                     {"backends", header.backends},
                     {"machine", Json::parse(machine_json(header.machine))}};
  return dumped(json);
}

std::string case_json(const CaseResult& result) {
  const Judgement& judgement = result.judgement;
  Json json = {{"kind", "case"},
               {"name", result.name},
               {"backend", judgement.backend},
               {"engine", judgement.engine},
               {"form", judgement.form},
               {"seed", result.seed},
               {"case", result.index},
               {"problem", result.problem},
               {"features", result.features},
               {"verdict", name(judgement.verdict)},
               {"reason", judgement.reason},
               {"error_over_bound", number(judgement.worst_over_bound)},
               {"z", number(judgement.worst_z)},
               {"oracles", Json::array()},
               {"findings", Json::array()},
               {"lints", judgement.lints},
               {"sampled", judgement.sampled},
               {"counters", judgement.counters},
               {"diagnosis", judgement.diagnosis},
               {"seconds", number(judgement.seconds)},
               {"repro", judgement.repro},
               {"fixture", result.fixture}};
  for (const OracleResult& oracle : judgement.oracles) {
    json["oracles"].push_back(oracle_object(oracle));
  }
  for (const Finding& finding : judgement.findings) {
    json["findings"].push_back(finding_object(finding));
  }
  if (!result.known.empty()) {
    json["known"] = result.known;
    json["known_issue"] = result.known_issue;
  }
  if (result.found) json["found"] = true;
  if (result.expected) {
    json["expected"] = name(*result.expected);
    json["unexpected"] = result.unexpected;
    if (result.applies != Applies::yes) json["applies"] = false;
  }
  return dumped(json);
}

std::string summary_json(std::span<const BackendTally> tallies, int exit_code, bool interrupted,
                         std::int64_t unread) {
  Json json = {{"kind", "summary"}, {"schema", record_schema},
               {"exit", exit_code}, {"interrupted", interrupted},
               {"unread", unread},  {"backends", Json::array()}};
  for (const BackendTally& tally : tallies) json["backends"].push_back(tally_object(tally));
  return dumped(json);
}

std::string replay_summary_json(std::span<const CaseResult> results, int exit_code,
                                bool interrupted) {
  std::int64_t unexpected = 0;
  for (const CaseResult& result : results) unexpected += result.unexpected.empty() ? 0 : 1;
  return dumped({{"kind", "summary"},
                 {"schema", record_schema},
                 {"exit", exit_code},
                 {"interrupted", interrupted},
                 {"verdicts", results.size()},
                 {"unexpected", unexpected}});
}

std::map<std::string, std::string> build_properties() {
  const BuildInfo& build = build_info();
  return {{"version", std::string(build.version)},
          {"revision", std::string(build.revision)},
          {"compiler", std::string(build.compiler)}};
}

std::map<std::string, std::string> run_properties(const RecordHeader& header) {
  auto properties = build_properties();
  properties["command"] = header.command;
  properties["seed"] = std::to_string(header.seed);
  properties["first"] = std::to_string(header.first);
  properties["count"] = std::to_string(header.count);
  properties["shard"] = header.shard;
  properties["rules"] = header.rules;
  properties["required"] = header.required;
  properties["system"] = header.machine.system;
  properties["cpu"] = header.machine.cpu;
  return properties;
}

RecordFile::RecordFile(const std::string& path) : path_(path) {
  if (path == "-") {
    path_ = "standard output";
    fd_ = STDOUT_FILENO;
    return;
  }
  fd_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (fd_ < 0) throw std::system_error(errno, std::generic_category(), "opening " + path);
  owned_ = true;
  if (!is_regular(fd_)) return;
  // Not before: the lines of whoever holds it are not ours to cut. A file system without locks is
  // taken as it is.
  const bool held = ::flock(fd_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  if (held || ::ftruncate(fd_, 0) != 0) {
    const int error = errno;
    ::close(fd_);
    throw std::system_error(
        error, std::generic_category(),
        held ? path + ": another run writes this record" : "truncating " + path);
  }
}

RecordFile::~RecordFile() {
  if (owned_) ::close(fd_);
}

void RecordFile::line(const std::string& json) {
  // Where others append to the same file, the end is not ours.
  const bool ours = is_regular(fd_) && (::fcntl(fd_, F_GETFL) & O_APPEND) == 0;
  const off_t whole = ours ? ::lseek(fd_, 0, SEEK_CUR) : -1;
  try {
    write_all(fd_, json + "\n", "writing " + path_);
  } catch (const std::system_error&) {
    if (whole >= 0 && ::ftruncate(fd_, whole) == 0) ::lseek(fd_, whole, SEEK_SET);
    throw;
  }
}

}  // namespace attest
