#include "property_tests/report/junit.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

#include "property_tests/report/failure_text.hpp"

namespace attest {
namespace {

std::string seconds_text(double seconds) {
  std::array<char, 32> buffer{};
  std::snprintf(buffer.data(), buffer.size(), "%.6f", seconds);
  return buffer.data();
}

std::string attribute(std::string_view key, std::string_view value) {
  return " " + std::string(key) + "=\"" + xml_escaped(value) + "\"";
}

/// Bytes of the UTF-8 character at the front; 0 = not one.
std::size_t utf8_length(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC2 ? 2 : 0;
  if (length == 0 || lead > 0xF4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0U) != 0x80U) return 0;
  }
  return length;
}

std::string escaped(char c) {
  switch (c) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '"':
      return "&quot;";
    case '\n':
      return "&#10;";
    default:
      return static_cast<unsigned char>(c) < 0x20 && c != '\t' ? "?" : std::string(1, c);
  }
}

enum class Outcome { passed, failure, error, skipped };

Outcome outcome_of(const CaseResult& result) {
  if (!result.known.empty()) return Outcome::skipped;
  if (says_nothing(result) || result.applies != Applies::yes) return Outcome::skipped;
  if (result.expected) return result.unexpected.empty() ? Outcome::passed : Outcome::failure;
  switch (result.judgement.verdict) {
    case Verdict::pass:
      return Outcome::passed;
    case Verdict::mismatch:
    case Verdict::rejected:
    case Verdict::untrusted:
      return Outcome::failure;
    case Verdict::crashed:
    case Verdict::hung:
      return Outcome::error;
    case Verdict::unsupported:
    case Verdict::unavailable:
      return Outcome::skipped;
  }
  return Outcome::error;
}

std::string body_of(const CaseResult& result, Outcome outcome) {
  const Judgement& judgement = result.judgement;
  const std::string& why = result.unexpected.empty() ? judgement.reason : result.unexpected;
  if (outcome == Outcome::skipped) {
    const std::string known =
        result.known.empty() ? "" : "known failure " + known_in_words(result) + ", ";
    return "      <skipped" +
           attribute("message", known + std::string(name(judgement.verdict)) + ": " + why) + "/>\n";
  }
  const char* tag = outcome == Outcome::error ? "error" : "failure";
  return std::string("      <") + tag + attribute("type", name(judgement.verdict)) +
         attribute("message", why) + ">" + xml_escaped(failure_text(result, Console::silent())) +
         "</" + tag + ">\n";
}

}  // namespace

std::string xml_escaped(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = utf8_length(text.substr(i));
    if (length != 1) {
      out += length == 0 ? std::string_view("?") : text.substr(i, length);
      i += std::max<std::size_t>(length, 1);
      continue;
    }
    out += escaped(text[i++]);
  }
  return out;
}

JunitReport::Suite& JunitReport::suite(const std::string& backend) {
  const auto found = std::find_if(suites_.begin(), suites_.end(),
                                  [&](const Suite& suite) { return suite.name == backend; });
  if (found != suites_.end()) return *found;
  suites_.push_back({.name = backend});
  return suites_.back();
}

void JunitReport::add(const CaseResult& result) {
  Suite& in = suite(result.judgement.backend);
  const Outcome outcome = outcome_of(result);
  ++in.tests;
  in.failures += outcome == Outcome::failure ? 1 : 0;
  in.errors += outcome == Outcome::error ? 1 : 0;
  in.skipped += outcome == Outcome::skipped ? 1 : 0;
  in.seconds += result.judgement.seconds;
  if (!result.judgement.engine.empty()) in.engine = result.judgement.engine;
  in.cases += "    <testcase" + attribute("classname", in.name) + attribute("name", result.name) +
              attribute("time", seconds_text(result.judgement.seconds));
  in.cases +=
      outcome == Outcome::passed ? "/>\n" : ">\n" + body_of(result, outcome) + "    </testcase>\n";
}

void JunitReport::add_unavailable(const std::string& backend, const std::string& reason) {
  CaseResult result;
  result.name = "available on this machine";
  result.judgement.backend = backend;
  result.judgement.verdict = Verdict::unavailable;
  result.judgement.reason = reason;
  add(result);
}

void JunitReport::add_unread(const std::string& place, const std::string& reason) {
  Suite& in = suite("input");
  ++in.tests;
  ++in.errors;
  in.cases += "    <testcase" + attribute("classname", in.name) + attribute("name", place) +
              ">\n      <error" + attribute("type", "unread") + attribute("message", reason) +
              "/>\n    </testcase>\n";
}

std::string JunitReport::xml(const std::map<std::string, std::string>& properties) const {
  std::string text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"attest\">\n";
  for (const Suite& suite : suites_) {
    text += "  <testsuite" + attribute("name", suite.name) +
            attribute("tests", std::to_string(suite.tests)) +
            attribute("failures", std::to_string(suite.failures)) +
            attribute("errors", std::to_string(suite.errors)) +
            attribute("skipped", std::to_string(suite.skipped)) +
            attribute("time", seconds_text(suite.seconds)) + ">\n    <properties>\n";
    std::map<std::string, std::string> all = properties;
    all["engine"] = suite.engine.empty() ? "none: nothing ran" : suite.engine;
    for (const auto& [key, value] : all) {
      text += "      <property" + attribute("name", key) + attribute("value", value) + "/>\n";
    }
    text += "    </properties>\n" + suite.cases + "  </testsuite>\n";
  }
  return text + "</testsuites>\n";
}

}  // namespace attest
