#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <limits>

#include "contracts/rules.hpp"
#include "contracts/signatures.hpp"
#include "contracts/signatures/drawn_problems.hpp"
#include "contracts/signatures/sample_problems.hpp"

namespace attest {
namespace {

/// What paged_ragged serves: one new token a request, heads of 64, neither window nor sinks.
Problem draw_step() {
  Problem p = draw_problem();
  p.mode = in(0, 1) ? Mode::decode : Mode::draft_decode;
  p.model.window.reset();
  p.model.sinks = false;
  p.model.head_dim = p.model.v_head_dim = 64;
  for (Request& r : p.requests) r.new_tokens = 1;
  if (in(0, 4) == 0) p.requests.front().committed += 300;  // past a partition
  fit_pool(p);
  return p;
}

void draw_trees(Problem& p) {
  for (Request& r : p.requests) {
    for (std::int64_t t = 0; t < r.new_tokens; ++t) r.tree_parent.push_back(in(-1, t - 1));
  }
}

/// What legacy_extend serves: prompts and drafts, trees too.
Problem draw_extend() {
  Problem p = draw_problem();
  const std::vector modes{Mode::extend, Mode::target_verify, Mode::draft_extend_v2};
  p.mode = *rc::gen::elementOf(modes);
  if (p.mode == Mode::target_verify && in(0, 1)) {
    p.model.window.reset();  // a Problem has no window with a tree
    draw_trees(p);
  }
  fit_pool(p);
  return p;
}

template <class CallType, class Lower>
void reads_back(const Problem& p, Lower lower) {
  RC_PRE(!problem_error(p));
  const SlotMap slots = make_slot_map(p);
  const Lowered<CallType> lowered = lower(p, slots);
  if (const auto* refused = std::get_if<Unsupported>(&lowered)) RC_FAIL(refused->reason);
  const CallType& call = std::get<CallType>(lowered);
  if (const auto differs = difference(attended(p), read(call, p, slots))) RC_FAIL(*differs);
  RC_ASSERT(attended(p) == read(call, p, slots));
  const Report report = check(call, {p, slots});
  for (const Finding& finding : report.findings()) RC_FAIL(to_string(finding));
}

TEST(RoundTrip, PagedRaggedReadsWhatItsLoweringMeant) {
  expect(rc::check("read(lower_paged_ragged(p)) == attended(p), and no rule fires",
                   [] { reads_back<PagedRaggedCall>(draw_step(), lower_paged_ragged); }));
}

TEST(RoundTrip, LegacyExtendReadsWhatItsLoweringMeant) {
  expect(rc::check("read(lower_legacy_extend(p)) == attended(p), and no rule fires",
                   [] { reads_back<LegacyExtendCall>(draw_extend(), lower_legacy_extend); }));
}

TEST(RoundTrip, ARuleRejectsEveryPagedRaggedCallThatReadsOtherKeys) {
  expect(rc::check("difference(attended(p), read(call)) implies check(call).rejects()", [] {
    const Problem p = draw_step();
    const SlotMap slots = make_slot_map(p);
    PagedRaggedCall call = std::get<PagedRaggedCall>(lower_paged_ragged(p, slots));
    if (in(0, 1)) edit(call.kv_indptr.values);
    if (in(0, 1)) edit(call.kv_page_indices.values);
    if (in(0, 3) == 0) call.max_num_partitions = in(0, 2);
    if (in(0, 5) == 0) call.partition_size = in(-1, 300);
    if (in(0, 5) == 0) call.logits_soft_cap = static_cast<double>(in(0, 30));
    require_a_rule_for_other_keys(call, p, slots);
  }));
}

TEST(RoundTrip, ARuleRejectsEveryLegacyExtendCallThatReadsOtherKeys) {
  expect(rc::check("difference(attended(p), read(call)) implies check(call).rejects()", [] {
    const Problem p = draw_extend();
    const SlotMap slots = make_slot_map(p);
    LegacyExtendCall call = std::get<LegacyExtendCall>(lower_legacy_extend(p, slots));
    for (std::vector<std::int64_t>* values :
         {&call.qo_indptr.values, &call.kv_indptr.values, &call.kv_indices.values}) {
      if (in(0, 2) == 0) edit(*values);
    }
    if (call.custom_mask && in(0, 1)) edit(call.custom_mask->values);
    if (call.mask_indptr && in(0, 2) == 0) edit(call.mask_indptr->values);
    if (in(0, 3) == 0) call.max_len_extend = in(0, 5);
    if (in(0, 3) == 0) call.sliding_window_size += in(-3, 3);
    if (in(0, 5) == 0) call.custom_mask.reset();
    if (in(0, 5) == 0) call.is_causal = false;
    require_a_rule_for_other_keys(call, p, slots);
  }));
}

TEST(RoundTrip, AnyPagedRaggedNumbersAreReadAndChecked) {
  expect(rc::check("neither throws", [] {
    const Problem p = draw_step();
    const SlotMap slots = make_slot_map(p);
    PagedRaggedCall call = std::get<PagedRaggedCall>(lower_paged_ragged(p, slots));
    for (std::vector<std::int64_t>* numbers :
         {&call.kv_indptr.values, &call.kv_page_indices.values, &call.kv_last_page_lens.values,
          &call.key_cache.shape, &call.value_cache.shape, &call.query.shape, &call.out.strides,
          &call.workspace_buffer.shape}) {
      disturb(*numbers);
    }
    if (in(0, 3) == 0) call.block_size = any_number();
    if (in(0, 3) == 0) call.max_num_partitions = any_number();
    if (in(0, 3) == 0) call.partition_size = any_number();
    RC_ASSERT(read(call, p, slots).rows.size() <= 1U << 17);
    (void)check(call, {p, slots});
  }));
}

TEST(RoundTrip, AnyLegacyExtendNumbersAreReadAndChecked) {
  expect(rc::check("neither throws", [] {
    const Problem p = draw_extend();
    const SlotMap slots = make_slot_map(p);
    LegacyExtendCall call = std::get<LegacyExtendCall>(lower_legacy_extend(p, slots));
    for (std::vector<std::int64_t>* numbers :
         {&call.qo_indptr.values, &call.kv_indptr.values, &call.kv_indices.values,
          &call.k_buffer.shape, &call.q_extend.shape, &call.k_extend.shape,
          &call.o_extend.strides}) {
      disturb(*numbers);
    }
    if (call.mask_indptr) disturb(call.mask_indptr->values);
    if (call.custom_mask) disturb(call.custom_mask->values);
    if (in(0, 4) == 0) call.max_len_extend = any_number();
    if (in(0, 4) == 0) call.sliding_window_size = any_number();
    RC_ASSERT(read(call, p, slots).rows.size() <= 1U << 17);
    (void)check(call, {p, slots});
  }));
}

TEST(RoundTrip, OffsetsFarBeforeRowZeroTakeNoTime) {
  const Problem p = sample_problem(Mode::extend, {{18, 3}, {5, 2}});
  const SlotMap slots = make_slot_map(p);
  LegacyExtendCall call = std::get<LegacyExtendCall>(lower_legacy_extend(p, slots));
  call.qo_indptr.values = {std::numeric_limits<std::int64_t>::min(), 3,
                           std::numeric_limits<std::int64_t>::max()};
  call.max_len_extend = std::numeric_limits<std::int64_t>::max();
  call.custom_mask.reset();
  EXPECT_EQ(read(call, p, slots).rows.size(), 5U);
  EXPECT_TRUE(check(call, {p, slots}).rejects());
}

TEST(PagedRagged, RefusesWhatItHasNoArgumentFor) {
  Problem p = sample_problem(Mode::decode, {{20, 1}});
  p.model.head_dim = p.model.v_head_dim = 64;
  const auto reason = [&](auto change) {
    Problem changed = p;
    change(changed);
    const auto lowered = lower_paged_ragged(changed, make_slot_map(changed));
    const auto* refused = std::get_if<Unsupported>(&lowered);
    return refused ? refused->reason : "";
  };
  EXPECT_EQ(reason([](Problem&) {}), "");
  EXPECT_EQ(reason([](Problem& q) { q.model.window = 8; }), "paged_ragged has no window");
  EXPECT_EQ(reason([](Problem& q) { q.model.sinks = true; }), "paged_ragged has no sinks");
  EXPECT_EQ(reason([](Problem& q) { q.requests[0].new_tokens = 2; }),
            "paged_ragged takes one new token a request, request 0 has 2");
  EXPECT_EQ(reason([](Problem& q) { q.model.head_dim = q.model.v_head_dim = 32; }),
            "paged_ragged takes head sizes from 64 on in steps of 16, the layer has 32");
}

TEST(PagedRagged, SizesItsGridAndScratchForTheLongestContext) {
  Problem p = sample_problem(Mode::decode, {{20, 1}, {5, 1}});
  p.model.head_dim = p.model.v_head_dim = 64;
  p.path = Path::capture;
  p.context_len = 1000;
  const auto call = std::get<PagedRaggedCall>(lower_paged_ragged(p, make_slot_map(p)));
  EXPECT_EQ(call.max_num_partitions, 4);
  EXPECT_EQ(call.workspace_buffer.shape[0], 2 * 4 * 4 * (64 * 4 + 8));
}

TEST(PagedRagged, ReadsNoKeyPastItsPartitions) {
  Problem p = sample_problem(Mode::decode, {{299, 1}, {5, 1}});
  p.model.head_dim = p.model.v_head_dim = 64;
  const SlotMap slots = make_slot_map(p);
  auto call = std::get<PagedRaggedCall>(lower_paged_ragged(p, slots));
  call.max_num_partitions = 1;
  const Attended meaning = read(call, p, slots);
  EXPECT_EQ(meaning.rows[0].visible(), 256);
  EXPECT_EQ(meaning.rows[1].visible(), 6);
}

TEST(LegacyExtend, ComputesNoRowPastTheBlocksOfMaxLenExtend) {
  const Problem p = sample_problem(Mode::extend, {{3, 40}});
  const SlotMap slots = make_slot_map(p);
  auto call = std::get<LegacyExtendCall>(lower_legacy_extend(p, slots));
  call.max_len_extend = 17;  // two blocks of 16
  const Attended meaning = read(call, p, slots);
  EXPECT_EQ(meaning.rows[31].expect, RowExpectation::value);
  EXPECT_EQ(meaning.rows[32].expect, RowExpectation::untouched);
}

TEST(LegacyExtend, ListsCommittedKeysAndMasksTheNewOnes) {
  const Problem p = sample_problem(Mode::target_verify, {{3, 2}, {1, 1}});
  const auto call = std::get<LegacyExtendCall>(lower_legacy_extend(p, make_slot_map(p)));
  EXPECT_EQ(call.kv_indptr.values, (std::vector<std::int64_t>{0, 3, 4}));
  EXPECT_EQ(call.mask_indptr->values, (std::vector<std::int64_t>{0, 10, 12}));
  EXPECT_EQ(call.custom_mask->values,
            (std::vector<std::int64_t>{1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1}));
}

TEST(LegacyExtend, SeesADraftTreeThroughItsMask) {
  Problem p = sample_problem(Mode::target_verify, {{3, 3}});
  p.topk = 2;
  p.requests[0].tree_parent = {-1, 0, 0};
  const SlotMap slots = make_slot_map(p);
  const auto call = std::get<LegacyExtendCall>(lower_legacy_extend(p, slots));
  EXPECT_EQ(read(call, p, slots), attended(p));
  EXPECT_EQ(read(call, p, slots).rows[2].visible(), 5);
}

}  // namespace
}  // namespace attest
