// What the rules on memory let pass: views that frameworks do make.

#include "contracts/rules/tensor_memory.hpp"

#include <gtest/gtest.h>

#include "contracts/byte_overlap.hpp"
#include "contracts/rules.hpp"
#include "contracts/signatures.hpp"
#include "contracts/signatures/sample_problems.hpp"

namespace attest {
namespace {

Problem verify() { return sample_problem(Mode::target_verify, {{6, 3}, {4, 2}}); }

template <class CallType>
CallType lowered(const Problem& p, Lowered<CallType> (*lower)(const Problem&, const SlotMap&)) {
  return std::get<CallType>(lower(p, make_slot_map(p)));
}

/// The findings of this file's rules, as text.
std::string findings(const Call& call, const Problem& p) {
  const SlotMap slots = make_slot_map(p);
  std::string text;
  for (const Finding& finding : check(call, Truth{p, slots}).findings()) {
    for (const Rule& rule : tensor_memory_rules()) {
      if (finding.rule == rule.id) text += to_string(finding) + "\n";
    }
  }
  return text;
}

/// Puts tensors side by side into rows of one storage.
void interleave(std::initializer_list<TensorMeta*> tensors, std::int64_t row) {
  std::int64_t offset = 0;
  for (TensorMeta* const t : tensors) {
    t->storage = "fused";
    t->storage_offset = offset;
    offset += t->shape.size() > 1 ? t->strides[0] : 1;
    t->strides[0] = row;
    t->storage_bytes = t->shape[0] * row * 2;
  }
}

TEST(MemoryRules, LetKeysAndValuesOfOneBufferPass) {
  Problem p = verify();
  p.pool.k.page = p.pool.v.page = 2 * 16 * 64;
  UnifiedCall call = lowered(p, lower_unified);
  call.k.storage = call.v.storage = "kv";
  call.v.storage_offset = 16 * 64;
  call.k.storage_bytes = call.v.storage_bytes = call.k.shape[0] * 2 * 16 * 64 * 2;
  EXPECT_EQ(findings(call, p), "");
  call.v.storage_offset -= 1;
  EXPECT_NE(findings(call, p), "");
}

TEST(MemoryRules, LetSlicesOfAFusedProjectionPass) {
  const Problem p = verify();
  ExtendCall call = lowered(p, lower_extend);
  interleave({&call.q_extend, &*call.k_extend, &*call.v_extend}, 128 + 64 + 64);
  EXPECT_EQ(findings(call, p), "");
  call.v_extend->storage_offset -= 1;
  EXPECT_NE(findings(call, p), "");
}

TEST(MemoryRules, LetNewKeysThatLieInThePoolPass) {
  const Problem p = verify();
  ExtendCall call = lowered(p, lower_extend);
  call.k_extend->storage = call.k_buffer.storage;
  EXPECT_EQ(findings(call, p), "");
  call.v_extend->storage = call.k_buffer.storage;
  EXPECT_NE(findings(call, p), "");
}

TEST(MemoryRules, LetOneExpandedKvHeadPass) {
  Problem p = sample_problem(Mode::decode, {{6, 1}});
  p.model.num_kv_heads = 1;
  DecodeCall call = lowered(p, lower_decode);
  for (TensorMeta* t : {&call.k_buffer, &call.v_buffer, &*call.key, &*call.value}) {
    t->shape[1] = 4;
    t->strides[1] = 0;
  }
  EXPECT_EQ(findings(call, p), "");
  EXPECT_FALSE(check(call, {p, make_slot_map(p)}).findings().empty()) << "slow all the same";
}

TEST(MemoryRules, LetAnMlaLayersValuesBeItsKeys) {
  const Problem p = sample_mla_problem(Mode::decode, {{6, 1}});
  DecodeCall call = lowered(p, lower_decode);
  call.value->strides[0] = 576;
  call.key->storage = call.value->storage = "latent";
  call.value->storage_bytes = call.key->storage_bytes;
  EXPECT_EQ(findings(call, p), "");
  call.v_buffer.storage_offset = 64;
  EXPECT_NE(findings(call, p), "");
}

TEST(MemoryRules, LetIndexArraysShareABuffer) {
  const Problem p = sample_problem(Mode::decode, {{6, 1}, {9, 1}});
  UnifiedCall call = lowered(p, lower_unified);
  call.cu_seqlens_q.meta.storage = call.seqused_k.meta.storage = "graph";
  EXPECT_EQ(findings(call, p), "");
  call.out.storage = "graph";
  EXPECT_NE(findings(call, p), "");
}

// A range-for over what check() returns: the temporary must not take its findings along.
TEST(Report, GivesItsFindingsAwayWhenItEnds) {
  const Problem p = verify();
  const SlotMap slots = make_slot_map(p);
  UnifiedCall call = lowered(p, lower_unified);
  call.q.strides[0] = 0;
  static_assert(std::is_same_v<decltype(check(call, {p, slots}).findings()), std::vector<Finding>>);
  std::int64_t seen = 0;
  for (const Finding& finding : check(call, {p, slots}).findings()) {
    seen += finding.rule == "tensor.rows_do_not_overlap";
  }
  EXPECT_EQ(seen, 1);
}

/// What the rule of page tables says of rows `stride` cells apart: two requests with three and one
/// pages in a table of four columns.
std::vector<Severity> of_rows_apart(std::int64_t stride, bool live = true) {
  Problem p = sample_problem(Mode::target_verify, {{35, 3}, {9, 2}});
  p.path = Path::replay;
  for (Request& r : p.requests) r.live = live;
  std::vector<Severity> severities;
  for (Call call : {Call(lowered(p, lower_unified)), Call(lowered(p, lower_vllm_cpu))}) {
    IntArray& table = std::holds_alternative<UnifiedCall>(call)
                          ? std::get<UnifiedCall>(call).block_table
                          : std::get<VllmCpuCall>(call).block_table;
    table.meta.shape[1] = 4;
    table.values.resize(8, 1);
    table.meta.strides[0] = stride;
    const SlotMap slots = make_slot_map(p);
    for (const Finding& f : check(call, Truth{p, slots}).findings()) {
      if (f.rule == "block_table.rows_do_not_overlap") severities.push_back(f.severity);
    }
  }
  return severities;
}

TEST(MemoryRules, RefuseTablesWhoseRowsShareAPageOfARequest) {
  using enum Severity;
  EXPECT_EQ(of_rows_apart(4), std::vector<Severity>());
  EXPECT_EQ(of_rows_apart(9), std::vector<Severity>());  // columns of a wider table
  EXPECT_EQ(of_rows_apart(3), (std::vector{policy, policy}));
  EXPECT_EQ(of_rows_apart(2), (std::vector{wrong, wrong}));
  EXPECT_EQ(of_rows_apart(0), (std::vector{wrong, wrong}));
  EXPECT_EQ(of_rows_apart(0, /*live=*/false), (std::vector{policy, policy}));
}

}  // namespace
}  // namespace attest
