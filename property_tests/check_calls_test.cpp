#include "property_tests/check_calls.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "contracts/verdict.hpp"
#include "property_tests/check_groups.hpp"
#include "property_tests/check_text.hpp"

namespace attest {
namespace {

CheckedCall call_with(Verdict verdict, LabelOutcome label) {
  CheckedCall call;
  call.id = "sglang-0001";
  call.kernel = "unified_attention";
  call.mode = "target_verify";
  call.path = "eager";
  call.check.verdict = verdict;
  call.comparison.outcome = label;
  if (verdict == Verdict::rejected) {
    call.check.findings = {{.rule = "seqused_k.counts_this_steps_tokens",
                            .severity = Severity::wrong,
                            .where = "seqused_k[0]",
                            .got = "20",
                            .expected = "24"},
                           {.rule = "seqused_k.counts_this_steps_tokens",
                            .severity = Severity::wrong,
                            .where = "seqused_k[1]",
                            .got = "21",
                            .expected = "25"}};
  }
  return call;
}

CheckSummary summary_of(std::initializer_list<CheckedCall> calls) {
  CheckSummary summary;
  for (const CheckedCall& call : calls) summary.add(call);
  return summary;
}

TEST(CheckCalls, ExitCodeWithoutLabelsIsTheWorstOfTheCalls) {
  const CheckedCall ok = call_with(Verdict::pass, LabelOutcome::agree);
  const CheckedCall wrong = call_with(Verdict::rejected, LabelOutcome::agree);
  const CheckedCall unknown = call_with(Verdict::unsupported, LabelOutcome::not_judged);
  EXPECT_EQ(check_exit_code(summary_of({ok, unknown}), false), 0);
  EXPECT_EQ(check_exit_code(summary_of({ok, wrong}), false), 2);
  EXPECT_EQ(check_exit_code(summary_of({unknown}), false), 3);
  EXPECT_EQ(check_exit_code(summary_of({}), false), exit_usage);
}

TEST(CheckCalls, ExitCodeWithLabelsIsAboutAgreement) {
  const CheckedCall wrong = call_with(Verdict::rejected, LabelOutcome::agree);
  const CheckedCall differs = call_with(Verdict::rejected, LabelOutcome::disagree);
  const CheckedCall unsure = call_with(Verdict::rejected, LabelOutcome::unsure);
  EXPECT_EQ(check_exit_code(summary_of({wrong, unsure}), true), 0);
  EXPECT_EQ(check_exit_code(summary_of({wrong, differs}), true), exit_expectation);
  EXPECT_EQ(check_exit_code(summary_of({unsure}), true), 3) << "nothing was compared";
}

TEST(CheckCalls, AWrongCallWithoutALabelIsWrongBesideLabelsToo) {
  const CheckedCall agrees = call_with(Verdict::pass, LabelOutcome::agree);
  const CheckedCall differs = call_with(Verdict::pass, LabelOutcome::disagree);
  const CheckedCall unsure = call_with(Verdict::rejected, LabelOutcome::unsure);
  const CheckedCall ok = call_with(Verdict::pass, LabelOutcome::not_judged);
  const CheckedCall wrong = call_with(Verdict::rejected, LabelOutcome::not_judged);
  const CheckedCall unread = call_with(Verdict::unsupported, LabelOutcome::not_judged);
  EXPECT_EQ(check_exit_code(summary_of({wrong}), true), 2);
  EXPECT_EQ(check_exit_code(summary_of({wrong, agrees}), true), 2);
  EXPECT_EQ(check_exit_code(summary_of({wrong, differs}), true), exit_expectation);
  EXPECT_EQ(check_exit_code(summary_of({ok, agrees, unread}), true), 0);
  EXPECT_EQ(check_exit_code(summary_of({ok}), true), 3) << "nothing was compared";
  for (const CheckedCall& shown : {wrong, differs, unsure}) EXPECT_TRUE(shown.surprises());
  for (const CheckedCall& quiet : {ok, agrees, unread}) EXPECT_FALSE(quiet.surprises());
  const CheckSummary summary = summary_of({wrong, ok, agrees, unread});
  EXPECT_EQ(summary.unlabelled, 2);
  EXPECT_EQ(summary.unlabelled_wrong, 1);
  EXPECT_NE(check_summary_text(summary, true, Console::silent())
                .find("; 2 without a label, of these 1 wrong."),
            std::string::npos);
}

TEST(CheckCalls, CountACallOncePerRule) {
  const CheckSummary summary = summary_of({call_with(Verdict::rejected, LabelOutcome::agree)});
  EXPECT_EQ(summary.wrong_by_rule.at("seqused_k.counts_this_steps_tokens"), 1);
}

TEST(CheckCalls, FindTheThreadsOfASource) {
  EXPECT_EQ(threads_in("sgl-project/sglang#36430 (draft decode); vllm-project/vllm#1 and a/b.cpp"),
            (std::vector<std::string>{"sgl-project/sglang#36430", "vllm-project/vllm#1"}));
  EXPECT_TRUE(threads_in("ROCm/aiter aiter/ops/x.py").empty());
}

TEST(CheckCalls, CountMissingValuesApartFromUnknownSignatures) {
  CheckedCall missing = call_with(Verdict::unsupported, LabelOutcome::not_judged);
  missing.check.missing = {"block_table"};
  const CheckSummary summary =
      summary_of({missing, call_with(Verdict::unsupported, LabelOutcome::not_judged)});
  EXPECT_EQ(summary.total().not_recorded, 1);
  EXPECT_EQ(summary.total().unsupported, 1);
}

TEST(CheckCalls, SayNothingAboutACallThatIsSimplyRight) {
  EXPECT_EQ(checked_call_text(call_with(Verdict::pass, LabelOutcome::agree), Console::silent()),
            "");
}

TEST(CheckCalls, NameTheArrayTheValueAndTheExpectation) {
  const std::string text =
      checked_call_text(call_with(Verdict::rejected, LabelOutcome::agree), Console::silent());
  EXPECT_NE(text.find("seqused_k[0] is 20, expected 24"), std::string::npos) << text;
}

TEST(CheckCalls, BeginWithTheFileAndTheLine) {
  CheckedCall call = call_with(Verdict::rejected, LabelOutcome::agree);
  call.place = "calls.jsonl:17";
  EXPECT_EQ(checked_call_text(call, Console::silent())
                .find("wrong  calls.jsonl:17  sglang-0001  unified_attention"),
            0U);
  EXPECT_NE(as_case_result(call, false).judgement.repro.find("calls.jsonl:17"), std::string::npos);
}

TEST(CheckCalls, TellSeveritiesApart) {
  CheckedCall call = call_with(Verdict::rejected, LabelOutcome::agree);
  call.check.findings[1].severity = Severity::fault;
  call.check.findings.push_back(call.check.findings[0]);
  call.check.findings.back().severity = Severity::policy;
  const CheckSummary summary = summary_of({call});
  const std::string text = check_summary_text(summary, false, Console::silent());
  EXPECT_NE(text.find("seqused_k.counts_this_steps_tokens  wrong, fault"), std::string::npos)
      << text;
  EXPECT_NE(text.find("seqused_k.counts_this_steps_tokens  policy"), std::string::npos) << text;
  const auto json = nlohmann::json::parse(check_summary_json(summary, 2));
  EXPECT_EQ(json["severities_by_rule"]["seqused_k.counts_this_steps_tokens"],
            (std::vector<std::string>{"wrong", "fault", "policy"}));
}

TEST(CheckCalls, SayWhyAnOperandBeginsBelowZeroAndWhere) {
  CheckedCall call = call_with(Verdict::rejected, LabelOutcome::agree);
  call.place = "calls.jsonl:17";
  call.addresses = {{"k", 2, -64, 64}, {"v", 2, 0, 64}};
  CheckedCall later = call;
  later.place = "calls.jsonl:18";
  const std::string text = check_summary_text(summary_of({call, later}), false, Console::silent());
  EXPECT_NE(text.find("\nk: begins before its first element, for a page, slot or row that the "
                      "metadata name is below 0; lowest in calls.jsonl:17\n"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find("\nv: "), std::string::npos) << text;
}

TEST(CheckCalls, CountFurtherPlacesOnce) {
  CheckedCall call = call_with(Verdict::rejected, LabelOutcome::agree);
  call.check.findings[1].more = 4;
  const std::string text = checked_call_text(call, Console::silent());
  EXPECT_NE(text.find("expected 25 (and 4 more)\n"), std::string::npos) << text;
}

TEST(CheckCalls, EndWithOneSentence) {
  const CheckSummary summary = summary_of({call_with(Verdict::pass, LabelOutcome::agree),
                                           call_with(Verdict::rejected, LabelOutcome::agree)});
  const std::string text = check_summary_text(summary, true, Console::silent());
  EXPECT_NE(text.find("2 calls: 2 judged, 1 wrong, 0 without recorded values, 0 unsupported; 2 "
                      "agree with their label, 0 differ.\n"),
            std::string::npos)
      << text;
}

// A rule is known from a thread; that a call shows that very bug is not known.
TEST(CheckCalls, CiteTheThreadsOfTheRulesThatFired) {
  const CheckSummary summary = summary_of({call_with(Verdict::rejected, LabelOutcome::agree)});
  const std::string text = check_summary_text(summary, true, Console::silent());
  EXPECT_NE(text.find("\nThe rules that fired cite: "), std::string::npos) << text;
  EXPECT_EQ(text.find("Public bugs"), std::string::npos) << text;
}

TEST(CheckCalls, WriteJsonThatSaysTheSame) {
  const auto json = nlohmann::json::parse(
      checked_call_json(call_with(Verdict::rejected, LabelOutcome::disagree)));
  EXPECT_EQ(json["outcome"], "wrong");
  EXPECT_EQ(json["comparison"], "disagree");
  EXPECT_EQ(json["findings"].size(), 2U);
}

TEST(AgeFromText, ReadsACountAndAUnitAndNothingElse) {
  using std::chrono::seconds;
  EXPECT_EQ(age_from_text("90s"), seconds(90));
  EXPECT_EQ(age_from_text("30m"), seconds(1800));
  EXPECT_EQ(age_from_text("2h"), seconds(7200));
  EXPECT_EQ(age_from_text("7d"), seconds(7 * 86'400));
  for (const char* const text :
       {"", "h", "2", "2w", "-2h", "2.5h", "2 h", "99999999999999999999d", "36501d", "0x2h"}) {
    EXPECT_EQ(age_from_text(text), std::nullopt) << text;
  }
}

TEST(CallGroups, SayEqualFindingsOnceAndTheMostFrequentFirst) {
  const CheckedCall wrong = call_with(Verdict::rejected, LabelOutcome::not_judged);
  CheckedCall elsewhere = wrong;
  elsewhere.mode = "decode";
  CheckedCall other_values = wrong;
  other_values.id = "sglang-0002";
  other_values.check.findings[0].got = "99";
  CallGroups groups;
  for (const CheckedCall& call : {elsewhere, wrong, other_values}) groups.add(call);
  const std::string text = groups.text(Console::silent());
  EXPECT_EQ(text.find("2 calls like"), 0U) << text;
  EXPECT_NE(text.find("1 call like"), std::string::npos) << text;
  EXPECT_EQ(text.find("99"), std::string::npos) << "the first call stands for its group";
}

TEST(CallGroups, CountTheGroupsBehindTheLimit) {
  CallGroups groups;
  CheckedCall call = call_with(Verdict::rejected, LabelOutcome::not_judged);
  for (const char* const mode : {"decode", "extend", "mixed"}) {
    call.mode = mode;
    groups.add(call);
  }
  const std::string text = groups.text(Console::silent(), 1);
  EXPECT_NE(text.find("... and 2 more groups (--limit 0 shows all)"), std::string::npos) << text;
  EXPECT_EQ(text.find("like", text.find("like") + 1), std::string::npos) << text;
  EXPECT_EQ(groups.text(Console::silent()).find("more group"), std::string::npos);
}

TEST(CallGroups, KeepReasonsApartAndLeaveOutWhatIsRight) {
  CheckedCall missing = call_with(Verdict::unsupported, LabelOutcome::not_judged);
  missing.check.reason = "no truth recorded";
  CheckedCall unknown = missing;
  unknown.check.reason = "kernel is not known";
  CallGroups groups;
  groups.add(call_with(Verdict::pass, LabelOutcome::not_judged));
  EXPECT_TRUE(groups.empty());
  groups.add(missing);
  groups.add(unknown);
  const std::string text = groups.text(Console::silent());
  EXPECT_EQ(text.find("2 calls"), std::string::npos) << text;
}

CheckedCall past_2_gib() {
  CheckedCall call = call_with(Verdict::rejected, LabelOutcome::agree);
  const std::int64_t edge = std::int64_t{1} << 30;
  call.addresses = {{"q", 2, 0, 4096}, {"k", 2, edge, edge + 64}, {"v", 2, edge - 64, edge}};
  return call;
}

TEST(CheckCalls, PrintTheOperandsThatTouchPast2GibibytesAndNoOthers) {
  const std::string text = checked_call_text(past_2_gib(), Console::silent());
  EXPECT_NE(text.find("touches  k bytes [2,147,483,648, 2,147,483,776), past 2^31 bytes"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find("touches  q"), std::string::npos) << text;
  EXPECT_EQ(text.find("touches  v"), std::string::npos) << text;
}

TEST(CheckCalls, SumUpBothEndsOfEveryOperandAgainstTheBoundaries) {
  CheckedCall near = past_2_gib();
  near.addresses = {{"k", 2, 64, 128}};
  const CheckSummary far = summary_of({past_2_gib()});
  EXPECT_EQ(far.reach.at("k").side({31, OffsetUnit::bytes}), Side::above);
  const CheckSummary summary = summary_of({near, past_2_gib()});
  EXPECT_EQ(summary.reach.at("k").lowest.first_byte(), 128);
  EXPECT_EQ(summary.reach.at("k").farthest.end_byte(), 2147483776);
  EXPECT_EQ(summary.reach.at("k").side({31, OffsetUnit::bytes}), Side::straddling);
  EXPECT_EQ(summary.reach.at("k").side({32, OffsetUnit::bytes}), Side::below);
  const std::string text = check_summary_text(summary, false, Console::silent());
  EXPECT_NE(text.find("offsets touched    lowest byte       end byte  2^31 bytes"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("k                          128  2,147,483,776  straddling"),
            std::string::npos)
      << text;
  const auto json = nlohmann::json::parse(check_summary_json(summary, 2));
  EXPECT_EQ(json["offsets"]["k"]["first_byte"], 128);
  EXPECT_EQ(json["offsets"]["k"]["end_byte"], 2147483776);
}

TEST(CheckCalls, WriteTheAddressesOfEveryOperandAsJson) {
  const auto json = nlohmann::json::parse(checked_call_json(past_2_gib()));
  ASSERT_EQ(json["addresses"].size(), 3U);
  EXPECT_EQ(json["addresses"][1]["operand"], "k");
  EXPECT_EQ(json["addresses"][1]["first_byte"], 2147483648);
  EXPECT_EQ(json["addresses"][1]["end_element"], 1073741888);
}

}  // namespace
}  // namespace attest
