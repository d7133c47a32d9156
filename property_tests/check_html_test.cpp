#include "property_tests/check_html.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace attest {
namespace {

using testing::HasSubstr;
using testing::Not;

CheckedCall wrong_call(const std::string& id, const std::string& place) {
  CheckedCall call;
  call.id = id;
  call.place = place;
  call.kernel = "unified_attention";
  call.check.verdict = Verdict::rejected;
  call.check.findings = {{.rule = "seqused_k.counts_this_steps_tokens",
                          .severity = Severity::wrong,
                          .where = "seqused_k[0]",
                          .got = "20",
                          .expected = "24"},
                         {.rule = "seqused_k.is_int64",
                          .severity = Severity::policy,
                          .where = "seqused_k.dtype",
                          .got = "int32",
                          .expected = "int64"}};
  call.addresses = {{"k", 2, 64, std::int64_t{1} << 31}};
  return call;
}

/// Every tag closed in order, no '<' or '&' that begins neither a tag nor a reference: enough of
/// XML to notice text that got out.
std::string malformed(const std::string& page) {
  std::vector<std::string> open;
  for (std::size_t at = page.find("<html"); at < page.size(); ++at) {
    if (page[at] == '&') {
      const std::string_view rest = std::string_view(page).substr(at, 6);
      bool known = false;
      for (const char* const name : {"&amp;", "&lt;", "&gt;", "&quot;", "&#10;"}) {
        known |= rest.starts_with(name);
      }
      if (!known) return "& at " + std::to_string(at);
    }
    if (page[at] != '<') continue;
    const std::size_t end = page.find('>', at);
    if (end == std::string::npos) return "open tag at " + std::to_string(at);
    const std::string tag = page.substr(at + 1, end - at - 1);
    const std::string name = tag.substr(tag.front() == '/', tag.find(' ') - (tag.front() == '/'));
    if (tag.back() != '/') {
      if (tag.front() != '/') {
        open.push_back(name);
      } else if (open.empty() || open.back() != name) {
        return "</" + name + "> at " + std::to_string(at);
      } else {
        open.pop_back();
      }
    }
    at = end;
  }
  return open.empty() ? "" : "<" + open.back() + "> never closed";
}

struct Page {
  CheckHtml html;
  CheckSummary summary;
  void add(const CheckedCall& call) {
    html.add(call);
    summary.add(call);
  }
  void add(const UnreadInput& unread) {
    html.add(unread);
    ++summary.unread;
  }
  std::string text(const std::string& source = "calls") const { return html.page(summary, source); }
};

TEST(CheckHtml, GroupsFindingsByRuleWithTheFirstPlaceOfEach) {
  Page page;
  page.add(wrong_call("first", "calls.jsonl:3"));
  CheckedCall second = wrong_call("second", "calls.jsonl:4");
  second.check.findings.erase(second.check.findings.begin() + 1);
  second.check.findings.front().more = 5;
  page.add(second);
  const std::string text = page.text();
  EXPECT_EQ(malformed(text), "");
  EXPECT_THAT(text, HasSubstr("<code>calls.jsonl:3</code><br/>first"));
  EXPECT_THAT(text, Not(HasSubstr("calls.jsonl:4")));
  EXPECT_THAT(text,
              HasSubstr("<td><span class=\"wrong\">wrong</span></td><td><span class=\"number\">2"
                        "</span></td><td><span class=\"number\">7</span></td>"));
  EXPECT_THAT(text, HasSubstr("seqused_k[0] is 20, expected 24"));
  // The wrong ones come first.
  EXPECT_LT(text.find("seqused_k.counts_this_steps_tokens"), text.find("seqused_k.is_int64"));
  EXPECT_THAT(text, HasSubstr("2 calls: 2 judged, 2 wrong"));
  EXPECT_THAT(text, HasSubstr("<code>k</code></td><td><span class=\"number\">128</span></td><td>"
                              "<span class=\"number\">4,294,967,296</span></td>"));
}

TEST(CheckHtml, TellsSeveritiesOfOneRuleApart) {
  Page page;
  CheckedCall call = wrong_call("first", "calls.jsonl:3");
  call.check.findings[1].rule = call.check.findings[0].rule;  // wrong here, policy there
  call.check.findings.push_back(call.check.findings[0]);
  call.check.findings.back().severity = Severity::fault;
  call.check.findings.push_back(call.check.findings[1]);
  call.check.findings.back().severity = Severity::slow;
  page.add(call);
  const std::string text = page.text();
  EXPECT_EQ(malformed(text), "");
  for (const char* const severity : {"wrong", "fault", "slow", "policy"}) {
    const std::string cell =
        "<span class=\"" + std::string(severity) + "\">" + severity + "</span>";
    // A row of what it does, and a row of the rule.
    EXPECT_THAT(text, HasSubstr("<tr><td>" + cell + "</td><td>")) << severity;
    EXPECT_THAT(text, HasSubstr("</td><td>" + cell + "</td><td><span class=\"number\">1</span>"))
        << severity;
    EXPECT_THAT(text, HasSubstr("." + std::string(severity) + "{color:")) << "in its own colour";
  }
  EXPECT_THAT(text, HasSubstr("an exception, an access out of bounds or NaN; rejects the call"));
}

TEST(CheckHtml, SaysWhyAnOperandBeginsBelowZero) {
  Page page;
  CheckedCall call = wrong_call("first", "calls.jsonl:3");
  call.addresses = {{"k", 2, -64, 64}};
  page.add(call);
  EXPECT_THAT(page.text(), HasSubstr("<p><code>k</code>: begins before its first element, for a "
                                     "page, slot or row that the metadata name is below 0; lowest "
                                     "in calls.jsonl:3</p>"));
}

TEST(CheckHtml, LetsNoTextOutOfItsPlace) {
  const std::string evil = "</code><script>alert('x')</script>&<!--\"\x1b[2J\xff\xe2\x80\xae";
  Page page;
  CheckedCall call = wrong_call(evil, evil);
  call.kernel = evil;
  for (Finding& finding : call.check.findings)
    finding.where = finding.got = finding.expected = evil;
  page.add(call);
  page.add(UnreadInput{evil, 3, evil});
  const std::string text = page.text(evil);
  EXPECT_EQ(malformed(text), "");
  EXPECT_THAT(text, Not(HasSubstr("<script")));
  EXPECT_THAT(text, Not(HasSubstr("<!--")));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(text, Not(HasSubstr("\xe2\x80\xae"))) << "an override of the writing direction";
  EXPECT_THAT(text, HasSubstr("default-src 'none'"));
}

TEST(CheckHtml, CountsTheUnreadPlacesItDoesNotList) {
  Page page;
  for (std::int64_t line = 1; line <= 1003; ++line) {
    page.add(UnreadInput{"calls.jsonl", line, "no JSON"});
  }
  const std::string text = page.text();
  EXPECT_EQ(malformed(text), "");
  EXPECT_THAT(text, HasSubstr("calls.jsonl:1000</code>"));
  EXPECT_THAT(text, Not(HasSubstr("calls.jsonl:1001")));
  EXPECT_THAT(text, HasSubstr("and 3 more places"));
  EXPECT_THAT(text, HasSubstr("1003 places could not be read"));
  EXPECT_THAT(text, HasSubstr("No rule fired."));
}

}  // namespace
}  // namespace attest
