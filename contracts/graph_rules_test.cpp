#include "contracts/graph_rules.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "contracts/signatures.hpp"
#include "contracts/signatures/sample_problems.hpp"
#include "contracts/work_lists.hpp"

namespace attest {
namespace {

using Rules = std::set<std::string>;

Problem captured_step(Mode mode) {
  Problem p = sample_problem(mode, {{0, 1}, {0, 1}});
  p.model.head_dim = p.model.v_head_dim = 64;
  p.path = Path::capture;
  p.context_len = 600;
  return p;
}

/// The steps that a graph of two requests was captured and is replayed for.
struct Pair {
  explicit Pair(Signature signature) : captured(captured_step(Mode::decode)), replayed(captured) {
    replayed.path = Path::replay;
    replayed.requests[0].committed = 299;
    replayed.requests[1].committed = 17;
    fit_pool(replayed);
    captured.pool = replayed.pool;
    capture = std::get<Call>(lower(signature, captured, make_slot_map(captured)));
    // The graph's buffer holds the longest context.
    if (auto* const paged = std::get_if<PagedRaggedCall>(&capture)) {
      paged->kv_page_indices.meta.storage_bytes = 1 << 16;
    }
    replay = std::get<Call>(lower(signature, replayed, make_slot_map(replayed)));
  }

  std::vector<SiteCall> calls() const {
    return {{"step 7", replay, replayed}, {"warm-up", capture, captured}};
  }
  Report check() const { return check_step(calls()); }
  Rules fired() const {
    Rules rules;
    const Report report = check();
    for (const Finding& finding : report.findings()) rules.insert(finding.rule);
    return rules;
  }

  Problem captured, replayed;
  Call capture, replay;
};

constexpr const char* tensors = "step.graph_tensors_are_the_captured";
constexpr const char* scalars = "step.graph_scalars_are_the_captured";
constexpr const char* serves = "step.graph_serves_the_replay";

TEST(GraphRules, FindNothingInAReplayOfItsCapture) {
  for (const Signature signature : {Signature::unified, Signature::paged_ragged}) {
    for (const Finding& f : Pair(signature).check().findings()) ADD_FAILURE() << to_string(f);
  }
}

TEST(GraphRules, SayWhichTensorIsAnother) {
  const auto fired = [](const std::function<void(UnifiedCall&, UnifiedCall&)>& change) {
    Pair pair(Signature::unified);
    change(std::get<UnifiedCall>(pair.capture), std::get<UnifiedCall>(pair.replay));
    return pair.fired();
  };
  EXPECT_EQ(fired([](UnifiedCall& capture, UnifiedCall& replay) {
              capture.seqused_k.meta.storage = "0x7f00";
              replay.seqused_k.meta.storage = "0x7f80";
            }),
            Rules{tensors});
  // An address is a number, and where a view begins a place in memory.
  EXPECT_EQ(fired([](UnifiedCall& capture, UnifiedCall& replay) {
              capture.seqused_k.meta.storage = "0x7f00";
              replay.seqused_k.meta.storage = "0X7F00";
              capture.cu_seqlens_q.meta.storage = "32512";
              replay.cu_seqlens_q.meta.storage = "0x7f00";
              capture.q.storage = "0x7f00";
              capture.q.storage_offset = 8;
              capture.q.storage_bytes += 16;
              replay.q.storage = "0x7f10";
            }),
            Rules{});
  EXPECT_EQ(fired([](UnifiedCall& capture, UnifiedCall& replay) {
              capture.seqused_k.meta.storage = "0x7f00";
              replay.seqused_k.meta.storage = "32513";
            }),
            Rules{tensors});
  // Labels that are no addresses name the storages of one call.
  EXPECT_EQ(fired([](UnifiedCall& capture, UnifiedCall& replay) {
              capture.seqused_k.meta.storage = "m1";
              replay.seqused_k.meta.storage = "m2";
              capture.cu_seqlens_q.meta.storage = "1";
              replay.cu_seqlens_q.meta.storage = "2";
            }),
            Rules{});
  EXPECT_EQ(fired([](UnifiedCall& capture, UnifiedCall&) {
              capture.cu_seqlens_q.meta = contiguous(Dtype::int64, {3});
            }),
            Rules{tensors});
  EXPECT_EQ(fired([](UnifiedCall& capture, UnifiedCall&) {
              capture.block_table.meta.strides[0] += 8;
              capture.block_table.meta.storage_bytes *= 2;
            }),
            (Rules{tensors}));
  EXPECT_TRUE(fired([](UnifiedCall& capture, UnifiedCall&) {
                capture.q = contiguous(Dtype::bf16, {1, 4, 64});
              }).contains(tensors));
  EXPECT_TRUE(fired([](UnifiedCall& capture, UnifiedCall&) {
                capture.sinks = contiguous(Dtype::bf16, {4});
              }).contains(tensors));
}

TEST(GraphRules, TellATensorThatIsAbsentOnce) {
  Pair pair(Signature::unified);
  std::get<UnifiedCall>(pair.capture).sinks = contiguous(Dtype::bf16, {4});
  EXPECT_TRUE(pair.fired().contains(tensors));
  EXPECT_FALSE(pair.fired().contains(scalars)) << "a tensor is no launch argument by value";
}

// A record has work lists only where the recorder saw them planned.
TEST(GraphRules, SayNothingOfWorkListsThatOneRecordLacks) {
  Problem step = sample_mla_problem(Mode::decode, {{30, 1}, {9, 1}});
  step.path = Path::capture;
  const auto plain = std::get<MlaDecodeCall>(lower_mla_decode(step, make_slot_map(step)));
  MlaDecodeCall capture = with_work_lists(plain, 2);
  MlaDecodeCall replay = plain;
  replay.persistent = true;
  Problem replayed = step;
  replayed.path = Path::replay;
  const auto fired = [&] {
    const Call later = replay, first = capture;  // a SiteCall only refers to them
    const std::vector<SiteCall> calls = {{"step 7", later, replayed}, {"warm-up", first, step}};
    Rules rules;
    const Report report = check_step(calls);
    for (const Finding& finding : report.findings()) rules.insert(finding.rule);
    return rules;
  };
  EXPECT_THAT(fired(), testing::IsEmpty());
  replay = capture;
  replay.work_indptr->meta.dtype = Dtype::int64;
  EXPECT_TRUE(fired().contains(tensors));
}

TEST(GraphRules, RejectAReplayThatItsCapturesPartitionsDoNotCover) {
  Pair pair(Signature::paged_ragged);
  std::get<PagedRaggedCall>(pair.capture).max_num_partitions = 1;  // of 256 keys, for 300
  EXPECT_EQ(pair.fired(), (Rules{scalars, serves}));
  EXPECT_TRUE(pair.check().rejects());
  // A replay that covers them by itself does not: the graph runs with the captured number.
  pair.replayed.requests[0].committed = 30;
  pair.replay =
      std::get<Call>(lower(Signature::paged_ragged, pair.replayed, make_slot_map(pair.replayed)));
  EXPECT_EQ(pair.fired(), Rules{scalars});
  EXPECT_FALSE(pair.check().rejects());
}

TEST(GraphRules, SayWhatTheGraphHasAndWhatTheReplayNeeds) {
  Pair pair(Signature::paged_ragged);
  std::get<PagedRaggedCall>(pair.capture).max_num_partitions = 1;
  std::string text;
  const Report report = pair.check();
  for (const Finding& f : report.findings()) {
    if (f.rule == serves) text = to_string(f);
  }
  EXPECT_EQ(
      text,
      "wrong step.graph_serves_the_replay: max_num_partitions of replay step 7 is 1, frozen by "
      "capture warm-up, expected 2, the longest request's 300 keys in partitions of 256 "
      "(max_num_partitions.cover_the_longest_request)");
}

TEST(GraphRules, LeaveAScalarThatOneSideDoesNotPassToPolicyAndSayItsValue) {
  Pair pair(Signature::batch_prefill);
  std::get<BatchPrefillCall>(pair.capture).softmax_scale = 0.25;
  std::get<BatchPrefillCall>(pair.replay).softmax_scale.reset();
  Report report;
  const std::vector<SiteCall> calls = pair.calls();
  graph_scalars_are_the_captured(LayerCalls(calls), report);
  ASSERT_EQ(report.findings().size(), 1U);
  const Finding& f = report.findings().front();
  EXPECT_EQ(f.severity, Severity::policy);
  EXPECT_EQ(f.where + ": " + f.got + ", " + f.expected,
            "softmax_scale of replay step 7: absent, 0.25, as capture warm-up has it");
}

TEST(GraphRules, TakeTheCaptureThatAReplayDiffersFromLeast) {
  const Pair pair(Signature::paged_ragged);
  Call other = pair.capture;
  std::get<PagedRaggedCall>(other).max_num_partitions = 1;
  std::get<PagedRaggedCall>(other).scale = 0.5;
  const std::vector<SiteCall> calls = {{"another graph", other, pair.captured},
                                       {"warm-up", pair.capture, pair.captured},
                                       {"step 7", pair.replay, pair.replayed}};
  Report report;
  graph_scalars_are_the_captured(LayerCalls(calls), report);
  graph_serves_the_replay(LayerCalls(calls), report);
  EXPECT_TRUE(report.findings().empty());
}

TEST(GraphRules, JudgeNoReplayOfAnotherBatchSizeOrServer) {
  Pair pair(Signature::unified);
  std::get<UnifiedCall>(pair.capture).cu_seqlens_q.meta.dtype = Dtype::int64;
  EXPECT_NE(pair.fired(), Rules{});
  ++pair.captured.pool.num_pages;
  EXPECT_EQ(pair.fired(), Rules{});
  --pair.captured.pool.num_pages;
  pair.captured.requests.push_back(pair.captured.requests.front());
  EXPECT_EQ(pair.fired(), Rules{});
}

TEST(GraphPairs, CountTheReplaysThatHaveNoCapture) {
  Pair pair(Signature::unified);
  const std::vector<SiteCall> both = {{"step 7", pair.replay, pair.replayed},
                                      {"warm-up", pair.capture, pair.captured}};
  EXPECT_TRUE(LayerCalls(both).without_capture().empty());
  const std::vector<SiteCall> two = {{"step 7", pair.replay, pair.replayed},
                                     {"another", pair.replay, pair.replayed}};
  const LayerCalls calls(two);
  ASSERT_EQ(calls.without_capture().size(), 2U);
  EXPECT_EQ(calls.without_capture().front()->name, "step 7");
  EXPECT_TRUE(check_step(calls).findings().empty());
}

/// `count` captures and replays of graphs whose q lies elsewhere each time, the replays' tables one
/// column narrower.
TEST(GraphPairs, HoldEachReplayAgainstTheCaptureAtItsAddress) {
  const Pair pair(Signature::unified);
  constexpr std::int64_t count = 50;
  std::vector<Call> captures(count, pair.capture), replays(count, pair.replay);
  std::vector<SiteCall> calls;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<std::size_t>(i);
    for (Call* const call : {&captures[at], &replays[at]}) {
      std::get<UnifiedCall>(*call).q.storage = std::to_string(100'000 + 256 * i);
    }
    IntArray& table = std::get<UnifiedCall>(replays[at]).block_table;
    --table.meta.shape[1];
    calls.push_back({"capture " + std::to_string(i), captures[at], pair.captured});
    calls.push_back({"replay " + std::to_string(i), replays[at], pair.replayed});
  }
  std::int64_t compared = 0;
  const std::vector<GraphPair> pairs = graph_pairs(calls, nullptr, &compared);
  EXPECT_EQ(compared, count);
  ASSERT_EQ(pairs.size(), static_cast<std::size_t>(count));
  EXPECT_EQ(pairs[17].capture->name, "capture 17");
  EXPECT_TRUE(pairs[17].differences.empty());
}

TEST(GraphPairs, HoldReplaysAgainstEqualCapturesOnce) {
  Pair pair(Signature::unified);
  std::get<UnifiedCall>(pair.capture).softmax_scale = 0.5;  // so that none is the right one
  std::vector<SiteCall> calls;
  for (int i = 0; i < 40; ++i) {
    calls.push_back({"capture", pair.capture, pair.captured});
    calls.push_back({"replay", pair.replay, pair.replayed});
  }
  std::int64_t compared = 0;
  EXPECT_EQ(graph_pairs(calls, nullptr, &compared).size(), 40U);
  EXPECT_EQ(compared, 40);
}

TEST(GraphPairs, EndWhereTheyAreStopped) {
  const Pair pair(Signature::unified);
  const std::vector<SiteCall> calls = {{"step 7", pair.replay, pair.replayed},
                                       {"warm-up", pair.capture, pair.captured}};
  const std::atomic<bool> stop{true};
  EXPECT_TRUE(graph_pairs(calls, &stop).empty());
  const LayerCalls stopped(calls, &stop);
  EXPECT_TRUE(stopped.stopped());
  EXPECT_TRUE(check_step(stopped).findings().empty());
}

}  // namespace
}  // namespace attest
