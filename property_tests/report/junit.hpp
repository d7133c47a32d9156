#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "property_tests/report/result.hpp"

namespace attest {

/// Collects results and writes them as JUnit XML: one testsuite per backend with its engine and the
/// header's facts as properties. mismatch, rejected and untrusted are failures, crashed and hung
/// are errors, unsupported and unavailable are skipped; where a case has an expectation (replay),
/// only that decides. Source: the schema Jenkins and GitLab read
/// (github.com/jenkinsci/xunit-plugin, junit-10.xsd).
class JunitReport {
 public:
  void add(const CaseResult& result);
  /// A backend that could not run at all.
  void add_unavailable(const std::string& backend, const std::string& reason);
  /// Something that was to be judged and could not be read.
  void add_unread(const std::string& place, const std::string& reason);

  std::string xml(const std::map<std::string, std::string>& properties) const;

 private:
  struct Suite {
    std::string name;
    std::string engine;
    std::int64_t tests = 0, failures = 0, errors = 0, skipped = 0;
    double seconds = 0;
    std::string cases;  ///< their XML
  };
  Suite& suite(const std::string& backend);

  std::vector<Suite> suites_;
};

/// Text as XML character data or attribute value; control characters XML 1.0 cannot hold become
/// '?'.
std::string xml_escaped(std::string_view text);

}  // namespace attest
