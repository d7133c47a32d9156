#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <limits>

#include "contracts/rules.hpp"
#include "contracts/signatures.hpp"
#include "contracts/signatures/sample_problems.hpp"

namespace attest {
namespace {

std::int64_t draw(std::int64_t low, std::int64_t high) {
  return *rc::gen::inRange<std::int64_t>(low, high + 1);
}
bool maybe() { return *rc::gen::arbitrary<bool>(); }

void draw_features(Problem& p) {
  Model& m = p.model;
  m.num_kv_heads = draw(1, 2);
  m.num_q_heads = m.num_kv_heads * draw(1, 3);
  m.v_head_dim = 32 * draw(1, 2);
  m.softcap = maybe() ? 30 : 0;
  m.sinks = maybe();
  if (maybe()) m.window = draw(1, 40);
  p.topk = m.window ? 1 : draw(1, 2);
  p.context_len = maybe() ? draw(0, 200) : 0;
  if (maybe()) p.num_draft_tokens = draw(1, 8);
  p.pool.page_size = *rc::gen::element<std::int64_t>(1, 4, 16);
  p.pool.placement = *rc::gen::element(Placement::permuted, Placement::sequential, Placement::high);
  p.pool.seed = *rc::gen::arbitrary<std::uint64_t>();
  if (maybe()) p.pool.k = {.page = 0, .slot = m.num_kv_heads * 40, .head = 40};
}

void draw_request(Problem& p, std::int64_t new_tokens, bool tree) {
  Request r;
  r.sequence = static_cast<std::int64_t>(p.requests.size()) + 10;
  r.committed = draw(0, 70);
  r.new_tokens = new_tokens;
  // A request without keys is a padded row (live_requests.have_keys).
  r.live = draw(0, 4) != 0 && r.kv_len() > 0;
  r.shared_prefix = maybe() ? draw(0, r.committed) : 0;
  r.shared_sequence = draw(1, 2);
  for (std::int64_t t = 0; tree && t < new_tokens; ++t) r.tree_parent.push_back(draw(-1, t - 1));
  p.requests.push_back(r);
}

void draw_encoder(Problem& p) {
  const bool cross = !p.model.window && p.topk == 1 && maybe();
  p.model.cross_attention = cross;
  for (Request& r : p.requests) {
    r.encoder_tokens = draw(cross ? 1 : 0, 20);
    if (cross) r.tree_parent.clear();
  }
}

Problem draw_extend() {
  Problem p;
  p.model.head_dim = 32;
  p.mode = *rc::gen::element(Mode::extend, Mode::mixed, Mode::target_verify, Mode::draft_extend_v2);
  draw_features(p);
  const bool masked = p.topk > 1;
  const std::int64_t width = draw(1, 40);
  const std::int64_t batch = draw(1, 4);
  for (std::int64_t i = 0; i < batch; ++i) {
    draw_request(p, masked ? width : draw(0, 40), masked && maybe());
  }
  if (!masked && maybe()) draw_encoder(p);
  fit_pool(p);
  return p;
}

Problem draw_decode() {
  Problem p;
  p.model.head_dim = 32;
  p.mode = *rc::gen::element(Mode::decode, Mode::idle, Mode::draft_decode);
  draw_features(p);
  const std::int64_t batch = draw(1, 4);
  for (std::int64_t i = 0; i < batch; ++i) draw_request(p, 1, false);
  if (!p.model.window && maybe()) draw_encoder(p);
  fit_pool(p);
  return p;
}

void check_round_trip(Signature signature, const Problem& p) {
  RC_LOG() << describe(p);
  RC_ASSERT(!problem_error(p));
  const SlotMap slots = make_slot_map(p);
  const Lowered<Call> call = lower(signature, p, slots);
  if (const auto* refused = std::get_if<Unsupported>(&call)) RC_FAIL(refused->reason);
  const Attended truth = attended(p);
  const Attended got = read(std::get<Call>(call), p, slots);
  if (const auto d = difference(truth, got)) RC_FAIL(*d);
  RC_ASSERT(truth == got);
}

TEST(CpuRoundTrip, ExtendMeansWhatTheProblemMeans) {
  EXPECT_TRUE(rc::check("read(lower(p)) == attended(p)",
                        [] { check_round_trip(Signature::extend, draw_extend()); }));
}

TEST(CpuRoundTrip, DecodeMeansWhatTheProblemMeans) {
  EXPECT_TRUE(rc::check("read(lower(p)) == attended(p)",
                        [] { check_round_trip(Signature::decode, draw_decode()); }));
}

/// One entry of one array becomes something else.
void damage(IntArray& array) {
  if (array.values.empty()) return;
  const auto at =
      static_cast<std::size_t>(draw(0, static_cast<std::int64_t>(array.values.size()) - 1));
  constexpr std::int64_t top = std::numeric_limits<std::int64_t>::max();
  array.values[at] = *rc::gen::element<std::int64_t>(-1, 0, 1, 7, 1000, 1 << 20, top, -top);
}

/// Reads and checks a damaged call. One that means something else must be rejected.
void check_damaged(const Call& call, const Problem& p, const SlotMap& slots) {
  const Attended truth = attended(p);
  const Attended got = read(call, p, slots);
  const Report report = check(call, Truth{p, slots});
  const auto d = difference(truth, got);
  if (d && !report.rejects()) RC_FAIL(*d);
}

TEST(CpuRoundTrip, DamagedExtendCallsThatMeanSomethingElseAreRejected) {
  EXPECT_TRUE(rc::check("check(damaged)", [] {
    const Problem p = draw_extend();
    RC_LOG() << describe(p);
    const SlotMap slots = make_slot_map(p);
    Lowered<ExtendCall> lowered = lower_extend(p, slots);
    auto& call = std::get<ExtendCall>(lowered);
    for (std::int64_t n = draw(0, 2); n > 0; --n) {
      damage(**rc::gen::element(&call.seq_lens, &call.extend_seq_lens, &call.extend_start_loc,
                                &call.req_pool_indices, &call.req_to_token));
    }
    if (maybe()) call.max_len_extend = draw(-2, 2000);
    if (maybe()) call.sliding_window_size = draw(-1, 30);
    if (call.tree_mask && maybe()) damage(*call.tree_mask);
    if (call.encoder_lens && maybe()) damage(*call.encoder_lens);
    check_damaged(call, p, slots);
  }));
}

TEST(CpuRoundTrip, DamagedDecodeCallsThatMeanSomethingElseAreRejected) {
  EXPECT_TRUE(rc::check("check(damaged)", [] {
    const Problem p = draw_decode();
    RC_LOG() << describe(p);
    const SlotMap slots = make_slot_map(p);
    Lowered<DecodeCall> lowered = lower_decode(p, slots);
    auto& call = std::get<DecodeCall>(lowered);
    for (std::int64_t n = draw(0, 2); n > 0; --n) {
      damage(**rc::gen::element(&call.seq_lens, &call.loc, &call.req_pool_indices,
                                &call.req_to_token));
    }
    if (maybe()) call.sliding_window_size = draw(-1, 30);
    if (call.encoder_lens && maybe()) damage(*call.encoder_lens);
    check_damaged(call, p, slots);
  }));
}

TEST(CpuRoundTrip, NoRuleRejectsWhatLowerMakes) {
  EXPECT_TRUE(rc::check("check(lower(p))", [] {
    const bool extend = maybe();
    const Problem p = extend ? draw_extend() : draw_decode();
    RC_LOG() << describe(p);
    const SlotMap slots = make_slot_map(p);
    const Lowered<Call> call = lower(extend ? Signature::extend : Signature::decode, p, slots);
    const Report report = check(std::get<Call>(call), Truth{p, slots});
    for (const Finding& finding : report.findings()) {
      if (rejects(finding.severity)) RC_FAIL(to_string(finding));
    }
  }));
}

}  // namespace
}  // namespace attest
