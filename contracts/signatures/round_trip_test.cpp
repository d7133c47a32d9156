#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>

#include "contracts/rules.hpp"
#include "contracts/signatures.hpp"
#include "contracts/signatures/drawn_problems.hpp"
#include "contracts/signatures/sample_problems.hpp"

namespace attest {
namespace {

void sort(std::vector<ContentKey>& keys) {
  std::sort(keys.begin(), keys.end(), [](const ContentKey& a, const ContentKey& b) {
    return a.sequence != b.sequence ? a.sequence < b.sequence : a.position < b.position;
  });
}

/// Single keys, sorted: runs of keys that were read twice can be cut in more than one way.
std::vector<ContentKey> single_keys(const AttendedRow& row) {
  std::vector<ContentKey> keys;
  for (const KeyRun& run : row.keys) {
    for (std::int64_t k = 0; k < run.count; ++k) keys.push_back({run.sequence, run.first + k});
  }
  sort(keys);
  return keys;
}

/// The unified kernel's visibility rule, one key at a time, over the inverse map token by token.
std::vector<ContentKey> walk(const UnifiedCall& call, std::size_t i, std::int64_t local_row,
                             const std::unordered_map<std::int64_t, ContentKey>& contents) {
  const std::int64_t rows = call.cu_seqlens_q.values[i + 1] - call.cu_seqlens_q.values[i];
  const std::int64_t position = call.seqused_k.values[i] - rows + local_row;
  std::vector<ContentKey> keys;
  for (std::int64_t j = 0; j <= position; ++j) {
    if (call.window_size[0] >= 0 && position - j > call.window_size[0]) continue;
    const std::int64_t page_size = call.k.shape[1];
    const std::int64_t page = call.block_table.at(i, static_cast<std::size_t>(j / page_size));
    const std::int64_t slot = page * page_size + j % page_size;
    const auto at = contents.find(slot);
    keys.push_back(at == contents.end() ? ContentKey{unknown_sequence, slot} : at->second);
  }
  sort(keys);
  return keys;
}

/// Legal ids and lengths that belong to somebody else.
void scramble(UnifiedCall& call) {
  for (std::int64_t n = in(0, 4); n > 0; --n) {
    auto& cells = call.block_table.values;
    std::swap(cells[static_cast<std::size_t>(in(0, static_cast<std::int64_t>(cells.size()) - 1))],
              cells[static_cast<std::size_t>(in(0, static_cast<std::int64_t>(cells.size()) - 1))]);
  }
  const std::int64_t capacity = call.block_table.size(1) * call.k.shape[1];
  for (std::int64_t& length : call.seqused_k.values) {
    if (in(0, 2) == 0) length = in(0, capacity);
  }
  if (in(0, 3) == 0) call.window_size = {in(-1, 30), 0};
}

TEST(RoundTrip, UnifiedReadsWhatItsLoweringMeant) {
  expect(rc::check("read(lower_unified(p)) == attended(p)", [] {
    const Problem p = draw_problem();
    RC_PRE(!problem_error(p));
    const SlotMap slots = make_slot_map(p);
    const Lowered<UnifiedCall> call = lower_unified(p, slots);
    RC_ASSERT(std::holds_alternative<UnifiedCall>(call));
    RC_ASSERT(difference(attended(p), read(std::get<UnifiedCall>(call), p, slots)) == std::nullopt);
    RC_ASSERT(attended(p) == read(std::get<UnifiedCall>(call), p, slots));
  }));
}

TEST(RoundTrip, MlaDecodeReadsWhatItsLoweringMeant) {
  expect(rc::check("read(lower_mla_decode(p)) == attended(p)", [] {
    const Problem p = draw_mla_problem();
    RC_PRE(!problem_error(p));
    const SlotMap slots = make_slot_map(p);
    const Lowered<MlaDecodeCall> call = lower_mla_decode(p, slots);
    RC_ASSERT(std::holds_alternative<MlaDecodeCall>(call));
    RC_ASSERT(attended(p) == read(std::get<MlaDecodeCall>(call), p, slots));
  }));
}

TEST(RoundTrip, BatchPrefillReadsWhatItsLoweringMeant) {
  expect(rc::check("read(lower_batch_prefill(p)) == attended(p), and no rule fires", [] {
    const Problem p = draw_problem();
    RC_PRE(!problem_error(p));
    const SlotMap slots = make_slot_map(p);
    const Lowered<BatchPrefillCall> call = lower_batch_prefill(p, slots);
    RC_ASSERT(std::holds_alternative<BatchPrefillCall>(call));
    RC_ASSERT(attended(p) == read(std::get<BatchPrefillCall>(call), p, slots));
    const Report report = check(std::get<BatchPrefillCall>(call), {p, slots});
    for (const Finding& finding : report.findings()) RC_FAIL(to_string(finding));
  }));
}

TEST(RoundTrip, UnifiedReadsAWrongCallLikeATokenByTokenWalk) {
  expect(rc::check("intervals agree with single keys", [] {
    Problem p = draw_problem();
    for (Request& r : p.requests) r.live = true;
    fit_pool(p);
    const SlotMap slots = make_slot_map(p);
    UnifiedCall call = std::get<UnifiedCall>(lower_unified(p, slots));
    scramble(call);
    if (call.max_seqlen_q == 1) call.max_seqlen_q = 2;  // row i is request i either way
    const auto contents = contents_by_slot(p, slots);
    const Attended got = read(call, p, slots);
    std::size_t r = 0;
    for (std::size_t i = 0; i < p.requests.size(); ++i) {
      for (std::int64_t t = 0; t < p.requests[i].new_tokens; ++t, ++r) {
        RC_ASSERT(single_keys(got.rows[r]) == walk(call, i, t, contents));
      }
    }
  }));
}

TEST(RoundTrip, ALoweredCallBreaksNoRule) {
  expect(rc::check("check(lower(p)) finds nothing", [] {
    const bool mla = in(0, 1) == 1;
    const Problem p = mla ? draw_mla_problem() : draw_problem();
    const SlotMap slots = make_slot_map(p);
    const Call call =
        std::get<Call>(lower(mla ? Signature::mla_decode : Signature::unified, p, slots));
    const Report report = check(call, {p, slots});
    for (const Finding& finding : report.findings()) {
      // Whether a length has a kernel is the GPU's business, not the lowering's.
      if (finding.rule != "draft_length.has_a_kernel") RC_FAIL(to_string(finding));
    }
  }));
}

TEST(RoundTrip, ALoweredCallOfARequestAtItsContextsEndBreaksNoRule) {
  Problem p = sample_problem(Mode::target_verify, {{57, 4}});
  p.context_len = 57;
  p.pool.page_size = 1;
  fit_pool(p);
  const SlotMap slots = make_slot_map(p);
  const Report report = check(std::get<Call>(lower(Signature::unified, p, slots)), {p, slots});
  for (const Finding& finding : report.findings()) ADD_FAILURE() << to_string(finding);
}

TEST(RoundTrip, ARuleRejectsEveryUnifiedCallThatReadsOtherKeys) {
  expect(rc::check("difference(attended(p), read(call)) implies check(call).rejects()", [] {
    const Problem p = draw_problem();
    const SlotMap slots = make_slot_map(p);
    UnifiedCall call = std::get<UnifiedCall>(lower_unified(p, slots));
    for (std::int64_t n = in(1, 2); n > 0; --n) {
      switch (in(0, 4)) {
        case 0:
          edit(call.cu_seqlens_q.values);
          break;
        case 1:
          edit(call.seqused_k.values);
          break;
        case 2:
          edit(call.block_table.values);
          break;
        case 3:
          call.max_seqlen_q = in(0, 3);
          break;
        default:
          call.window_size[0] += in(1, 3);  // shorter by one is the open question
      }
    }
    require_a_rule_for_other_keys(call, p, slots);
  }));
}

TEST(RoundTrip, ARuleRejectsEveryMlaCallThatReadsOtherKeys) {
  expect(rc::check("difference(attended(p), read(call)) implies check(call).rejects()", [] {
    const Problem p = draw_mla_problem();
    const SlotMap slots = make_slot_map(p);
    MlaDecodeCall call = std::get<MlaDecodeCall>(lower_mla_decode(p, slots));
    for (std::vector<std::int64_t>* values :
         {&call.qo_indptr.values, &call.kv_indptr.values, &call.kv_indices.values}) {
      if (in(0, 1)) edit(*values);
    }
    if (in(0, 3) == 0) call.max_seqlen_q = in(0, 5);
    require_a_rule_for_other_keys(call, p, slots);
  }));
}

TEST(RoundTrip, ARuleRejectsEveryBatchPrefillCallThatReadsOtherKeys) {
  expect(rc::check("difference(attended(p), read(call)) implies check(call).rejects()", [] {
    const Problem p = draw_problem();
    const SlotMap slots = make_slot_map(p);
    BatchPrefillCall call = std::get<BatchPrefillCall>(lower_batch_prefill(p, slots));
    for (std::vector<std::int64_t>* values :
         {&call.cu_seqlens_q.values, &call.kv_indptr.values, &call.kv_page_indices.values}) {
      if (in(0, 1)) edit(*values);
    }
    if (in(0, 3) == 0) call.max_seqlen_q = in(0, 5);
    if (in(0, 3) == 0) call.max_seqlen_k = in(0, 60);
    if (in(0, 3) == 0) call.window_size[0] += in(-3, 3);
    if (in(0, 5) == 0) call.causal = false;
    require_a_rule_for_other_keys(call, p, slots);
  }));
}

TEST(RoundTrip, AnyNumbersAreReadAndChecked) {
  expect(rc::check("neither throws", [] {
    const Problem p = draw_problem();
    const SlotMap slots = make_slot_map(p);
    UnifiedCall call = std::get<UnifiedCall>(lower_unified(p, slots));
    for (std::vector<std::int64_t>* numbers :
         {&call.cu_seqlens_q.values, &call.seqused_k.values, &call.block_table.values,
          &call.k.shape, &call.v.shape, &call.q.shape, &call.out.shape, &call.k.strides,
          &call.out.strides, &call.block_table.meta.shape}) {
      disturb(*numbers);
    }
    if (in(0, 4) == 0) call.max_seqlen_q = any_number();
    if (in(0, 4) == 0) call.max_seqlen_k = any_number();
    if (in(0, 4) == 0) call.window_size = {any_number(), any_number()};
    RC_ASSERT(read(call, p, slots).rows.size() <= 1U << 17);
    (void)check(call, {p, slots});
  }));
}

TEST(RoundTrip, AnyMlaNumbersAreReadAndChecked) {
  expect(rc::check("neither throws", [] {
    const Problem p = draw_mla_problem();
    const SlotMap slots = make_slot_map(p);
    MlaDecodeCall call = std::get<MlaDecodeCall>(lower_mla_decode(p, slots));
    for (std::vector<std::int64_t>* numbers :
         {&call.qo_indptr.values, &call.kv_indptr.values, &call.kv_indices.values,
          &call.kv_last_page_lens.values, &call.kv_buffer.shape, &call.q.shape, &call.q.strides,
          &call.kv_buffer.strides, &call.o.shape}) {
      disturb(*numbers);
    }
    if (in(0, 4) == 0) call.max_seqlen_q = any_number();
    if (in(0, 3) == 0) call.page_size = call.kv_buffer.shape.empty() ? 1 : any_number();
    if (in(0, 3) == 0 && call.kv_buffer.shape.size() > 1) call.page_size = call.kv_buffer.shape[1];
    RC_ASSERT(read(call, p, slots).rows.size() <= 1U << 17);
    (void)check(call, {p, slots});
  }));
}

TEST(RoundTrip, AnyBatchPrefillNumbersAreReadAndChecked) {
  expect(rc::check("neither throws", [] {
    const Problem p = draw_problem();
    const SlotMap slots = make_slot_map(p);
    BatchPrefillCall call = std::get<BatchPrefillCall>(lower_batch_prefill(p, slots));
    for (std::vector<std::int64_t>* numbers :
         {&call.cu_seqlens_q.values, &call.kv_indptr.values, &call.kv_page_indices.values,
          &call.k.shape, &call.v.shape, &call.q.shape, &call.q.strides, &call.k.strides}) {
      disturb(*numbers);
    }
    if (in(0, 4) == 0) call.max_seqlen_q = any_number();
    if (in(0, 4) == 0) call.max_seqlen_k = any_number();
    if (in(0, 4) == 0) call.window_size = {any_number(), any_number()};
    RC_ASSERT(read(call, p, slots).rows.size() <= 1U << 17);
    (void)check(call, {p, slots});
  }));
}

}  // namespace
}  // namespace attest
