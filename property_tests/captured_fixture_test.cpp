#include "property_tests/captured_fixture.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "contracts/signatures.hpp"
#include "property_tests/replay.hpp"
#include "property_tests/report/atomic_file.hpp"
#include "property_tests/transplant.hpp"

namespace attest {
namespace {

namespace fs = std::filesystem;

CapturedCall line_of(const std::string& id) {
  CapturedCall found;
  read_captured(fs::path(ATTEST_SOURCE_DIR) / "fixtures/corpus/captured",
                [&](const CapturedCall& call) {
                  if (call.id == id) found = call;
                });
  EXPECT_TRUE(found.problem) << id;
  return found;
}

std::int64_t tokens(const Problem& p) {
  std::int64_t sum = 0;
  for (const Request& r : p.requests) sum += r.kv_len();
  return sum;
}

/// Every verdict of a replay of the fixture that is not as it promises.
std::vector<std::string> surprises(const Fixture& fixture) {
  const fs::path path =
      fs::path(testing::TempDir()) / ("captured_fixture." + std::to_string(getpid()) + ".json");
  write_atomically(path, to_json(fixture));
  std::vector<std::string> unexpected;
  std::size_t verdicts = 0;
  replay_file(path, {}, [&](const CaseResult& result) {
    ++verdicts;
    if (!result.unexpected.empty()) unexpected.push_back(result.name + ": " + result.unexpected);
  });
  fs::remove(path);
  EXPECT_GE(verdicts, 2U);
  return unexpected;
}

struct Recorded {
  std::string id, rule;
  bool mismatch;  ///< a scalar kernel then computes other numbers
};

class CapturedFixtures : public testing::TestWithParam<Recorded> {};

TEST_P(CapturedFixtures, AreSmallAndReplayAsTheyPromise) {
  const CapturedCall call = line_of(GetParam().id);
  const auto made = fixture_of_captured(call, {});
  ASSERT_TRUE(std::holds_alternative<CapturedFixture>(made)) << std::get<std::string>(made);
  const auto& result = std::get<CapturedFixture>(made);
  EXPECT_EQ(result.kept, GetParam().rule);
  const Fixture& fixture = result.fixture;
  EXPECT_LE(tokens(fixture.trace.front()), tokens(call.problem.value_or(Problem())));
  const auto whole = fixture_of_captured(call, {.max_trials = 0});
  EXPECT_LT(to_json(fixture).size(), to_json(std::get<CapturedFixture>(whole).fixture).size());
  EXPECT_LE(to_json(fixture).size(), 8192U);
  const Problem& step = fixture.trace.front();
  const auto right = lower(signature_of(*call.call), step, make_slot_map(step));
  EXPECT_TRUE(keeps_signs(*call.call, *fixture.call, std::get<Call>(right)));
  const Expectation faulty = fixture.faulty.value_or(Expectation());
  EXPECT_EQ(faulty.enforced, Verdict::rejected);
  EXPECT_EQ(faulty.reported == Verdict::mismatch, GetParam().mismatch);
  EXPECT_EQ(result.no_symptom.empty(), GetParam().mismatch) << result.no_symptom;
  // What the call's numbers show is not shrunk away.
  const auto& as_it_was = std::get<CapturedFixture>(whole).fixture.faulty;
  EXPECT_EQ(faulty.reported, as_it_was.value_or(Expectation()).reported);
  EXPECT_EQ(fixture.fixed.enforced, Verdict::pass);
  EXPECT_EQ(surprises(fixture), std::vector<std::string>{});
}

INSTANTIATE_TEST_SUITE_P(
    Corpus, CapturedFixtures,
    testing::Values(Recorded{"sglang-0018", "query_offsets.end_at_the_last_row", true},
                    Recorded{"sglang-0042", "seqused_k.counts_this_steps_tokens", true},
                    Recorded{"sglang-0070", "seq_lens.counts_committed_and_new_tokens", true},
                    Recorded{"sglang-0086", "query_offsets.follow_the_real_lengths", true},
                    Recorded{"sglang-0105", "softmax_scale.is_the_layers", true},
                    Recorded{"sglang-0111", "query_offsets.never_decrease", true},
                    Recorded{"sglang-0137", "softmax_scale.is_the_layers", true},
                    Recorded{"sglang-0162", "query_offsets.end_at_the_last_row", true},
                    Recorded{"sglang-0238", "block_table.names_the_requests_pages", true},
                    Recorded{"sglang-0294", "batch.arrays_have_one_entry_per_request", true}),
    [](const auto& param) { return "line_" + param.param.id.substr(7); });

// 140 of 142 keys were counted: -1 of 1 would be another mistake.
TEST(CapturedFixture, CountsAsManyKeysTooFewAsTheCall) {
  const auto made = fixture_of_captured(line_of("sglang-0042"), {});
  const Fixture& fixture = std::get<CapturedFixture>(made).fixture;
  const auto& call = std::get<UnifiedCall>(*fixture.call);
  const Problem& step = fixture.trace.front();
  ASSERT_FALSE(call.seqused_k.values.empty());
  for (std::size_t i = 0; i < call.seqused_k.values.size(); ++i) {
    EXPECT_GT(call.seqused_k[i], 0) << i;
    EXPECT_LE(call.seqused_k[i], step.requests[i].kv_len()) << i;
  }
}

TEST(CapturedFixture, SaysWhyThereIsNone) {
  const auto right = fixture_of_captured(line_of("sglang-0032"), {});
  ASSERT_TRUE(std::holds_alternative<std::string>(right));
  EXPECT_NE(std::get<std::string>(right).find("nothing is wrong with this call"),
            std::string::npos);
  CapturedCall unread;
  unread.unsupported = "kernel \"x\" is not known to this version";
  EXPECT_EQ(std::get<std::string>(fixture_of_captured(unread, {})), unread.unsupported);
}

/// A call that the kernel here cannot judge is not for that right.
TEST(CapturedFixture, DoesNotCallRightWhatWasNotJudged) {
  CapturedCall large = line_of("sglang-0032");
  Problem step = large.problem.value_or(Problem());
  step.requests = {{.committed = 700'000, .new_tokens = 64}};
  step.context_len = 0;
  step.pool.slots.clear();
  step.pool.num_pages = 720'000 / step.pool.page_size;
  ASSERT_EQ(problem_error(step), std::nullopt);
  large.call = std::get<Call>(lower(signature_of(*large.call), step, make_slot_map(step)));
  large.problem = step;
  const auto made = fixture_of_captured(large, {});
  ASSERT_TRUE(std::holds_alternative<std::string>(made));
  const std::string& why = std::get<std::string>(made);
  EXPECT_NE(why.find("its numbers were not judged: scalar."), std::string::npos) << why;
  EXPECT_NE(why.find("says unsupported ("), std::string::npos) << why;
  EXPECT_NE(why.find("the most that attest launches"), std::string::npos) << why;
}

// Every launch is in a worker: a kernel that dies of the call is what the fixture shows, and does
// not take the shrinking along.
TEST(CapturedFixture, OutlivesAKernelThatDies) {
  const CapturedCall right = line_of("sglang-0032");
  const auto made = fixture_of_captured(right, {.max_trials = 40, .worker = {"/bin/false"}});
  ASSERT_TRUE(std::holds_alternative<CapturedFixture>(made)) << std::get<std::string>(made);
  const auto& result = std::get<CapturedFixture>(made);
  EXPECT_EQ(result.kept, "crashed");
  EXPECT_GT(result.steps, 0);
  EXPECT_LT(tokens(result.fixture.trace.front()), tokens(*right.problem));
  EXPECT_EQ(result.fixture.faulty.value_or(Expectation()).reported, Verdict::crashed);
}

TEST(CapturedFixture, KeepsTheRuleThatWasAskedFor) {
  const CapturedCall call = line_of("sglang-0005");
  const auto made = fixture_of_captured(call, {.rule = "seqused_k.is_int64"});
  ASSERT_TRUE(std::holds_alternative<CapturedFixture>(made)) << std::get<std::string>(made);
  EXPECT_EQ(std::get<CapturedFixture>(made).kept, "seqused_k.is_int64");
  EXPECT_EQ(std::get<CapturedFixture>(made).no_symptom,
            "scalar.unified@cpu computes the right numbers from this call");
  EXPECT_EQ(surprises(std::get<CapturedFixture>(made).fixture), std::vector<std::string>{});
  const auto absent = fixture_of_captured(call, {.rule = "softmax_scale.is_the_layers"});
  EXPECT_TRUE(std::holds_alternative<std::string>(absent));
}

// The scalar kernel widens its offsets, so the rule is policy there: a kernel that does not shows
// it.
TEST(CapturedFixture, IsOfAKernelOnWhichTheRuleRejects) {
  const auto made = fixture_of_captured(line_of("sglang-0370"), {});
  const auto& fixture = std::get<CapturedFixture>(made).fixture;
  EXPECT_TRUE(fixture.backend.starts_with("faulty-")) << fixture.backend;
  EXPECT_EQ(fixture.faulty.value_or(Expectation()).enforced, Verdict::rejected);
  EXPECT_EQ(surprises(fixture), std::vector<std::string>{});
}

// Branches that share slots: no lowering to be smaller with.
TEST(CapturedFixture, IsAsLargeAsTheCallWhereTheStepHasNoLowering) {
  const CapturedCall call = line_of("sglang-0171");
  const auto made = fixture_of_captured(call, {});
  const auto& result = std::get<CapturedFixture>(made);
  EXPECT_NE(result.not_shrunk, "");
  EXPECT_EQ(result.fixture.call, call.call);
  EXPECT_FALSE(result.fixture.faulty);
  EXPECT_EQ(surprises(result.fixture), std::vector<std::string>{});
}

TEST(CapturedFixture, KeepsTheCallAsItWasWithoutTrials) {
  const CapturedCall call = line_of("sglang-0042");
  const auto made = fixture_of_captured(call, {.max_trials = 0});
  const auto& result = std::get<CapturedFixture>(made);
  EXPECT_EQ(result.fixture.call, call.call);
  EXPECT_EQ(surprises(result.fixture), std::vector<std::string>{});
}

}  // namespace
}  // namespace attest
