#include "contracts/signatures/vllm_cpu.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "contracts/rules.hpp"
#include "contracts/signatures.hpp"
#include "contracts/signatures/drawn_problems.hpp"
#include "contracts/signatures/sample_problems.hpp"

namespace attest {
namespace {

/// What vllm_cpu serves: blocks in steps of 16 tokens, a head's V behind its K or apart.
Problem draw_step() {
  Problem p = draw_problem();
  p.pool.page_size = *rc::gen::elementOf(std::vector<std::int64_t>{16, 32, 64});
  if (in(0, 2) == 0) {
    const std::int64_t head = 2 * p.pool.page_size * p.model.head_dim;
    p.pool.k =
        p.pool.v = {.page = p.model.num_kv_heads * head, .slot = p.model.head_dim, .head = head};
  }
  const std::vector types{Dtype::bf16, Dtype::f16, Dtype::f32};
  p.model.q_dtype = p.model.kv_dtype = p.model.out_dtype = *rc::gen::elementOf(types);
  fit_pool(p);
  return p;
}

VllmCpuCall lowered(const Problem& p) {
  return std::get<VllmCpuCall>(lower_vllm_cpu(p, make_slot_map(p)));
}

TEST(RoundTrip, VllmCpuReadsWhatItsLoweringMeant) {
  expect(rc::check("read(lower_vllm_cpu(p)) == attended(p), and no rule fires", [] {
    const Problem p = draw_step();
    RC_PRE(!problem_error(p));
    const SlotMap slots = make_slot_map(p);
    const auto call = lower_vllm_cpu(p, slots);
    if (const auto* refused = std::get_if<Unsupported>(&call)) RC_FAIL(refused->reason);
    const VllmCpuCall& made = std::get<VllmCpuCall>(call);
    if (const auto differs = difference(attended(p), read(made, p, slots))) RC_FAIL(*differs);
    RC_ASSERT(attended(p) == read(made, p, slots));
    const Report report = check(made, {p, slots});
    for (const Finding& finding : report.findings()) RC_FAIL(to_string(finding));
  }));
}

TEST(RoundTrip, ARuleRejectsEveryVllmCpuCallThatReadsOtherKeys) {
  expect(rc::check("difference(attended(p), read(call)) implies check(call).rejects()", [] {
    const Problem p = draw_step();
    VllmCpuCall call = lowered(p);
    for (std::vector<std::int64_t>* values :
         {&call.query_start_loc.values, &call.seq_lens.values, &call.block_table.values}) {
      if (in(0, 2) == 0) edit(*values);
    }
    if (in(0, 3) == 0) call.sliding_window += in(-3, 3);
    if (in(0, 5) == 0) call.causal = false;
    if (in(0, 5) == 0) call.softcap = static_cast<double>(in(0, 30));
    require_a_rule_for_other_keys(call, p, make_slot_map(p));
  }));
}

TEST(RoundTrip, AnyVllmCpuNumbersAreReadAndChecked) {
  expect(rc::check("neither throws", [] {
    const Problem p = draw_step();
    const SlotMap slots = make_slot_map(p);
    VllmCpuCall call = lowered(p);
    for (std::vector<std::int64_t>* numbers :
         {&call.query_start_loc.values, &call.seq_lens.values, &call.block_table.values,
          &call.block_table.meta.shape, &call.key_cache.shape, &call.key_cache.strides,
          &call.value_cache.shape, &call.query.shape, &call.output.strides}) {
      disturb(*numbers);
    }
    if (in(0, 3) == 0) call.sliding_window = any_number();
    call.causal = in(0, 1) == 1;
    RC_ASSERT(read(call, p, slots).rows.size() <= 1U << 17);
    (void)check(call, {p, slots});
  }));
}

TEST(VllmCpu, HasHeadsBeforeTokensAndInt32Lengths) {
  Problem p = sample_problem(Mode::target_verify, {{35, 3}, {9, 2}});
  const VllmCpuCall call = lowered(p);
  const std::vector<std::int64_t> shape = {p.pool.num_pages, 2, 16, 32};
  EXPECT_EQ(call.key_cache.shape, shape);
  EXPECT_EQ(call.key_cache.strides, (std::vector<std::int64_t>{1024, 512, 32, 1}));
  EXPECT_EQ(call.query_start_loc.values, (std::vector<std::int64_t>{0, 3, 5}));
  EXPECT_EQ(call.seq_lens, int_array(Dtype::int32, {38, 11}));
  EXPECT_EQ(call.sliding_window, -1);
  p.model.window = 8;
  EXPECT_EQ(lowered(p).sliding_window, 8);
}

TEST(VllmCpu, SeesLaterDraftsWithoutTheCausalOrder) {
  const Problem p = sample_problem(Mode::target_verify, {{35, 3}});
  VllmCpuCall call = lowered(p);
  call.causal = false;
  const Attended meaning = read(call, p, make_slot_map(p));
  EXPECT_EQ(meaning.rows[0].visible(), 38);
  call.sliding_window = 2;  // to both sides
  const Attended windowed = read(call, p, make_slot_map(p));
  EXPECT_EQ(windowed.rows[0].visible(), 3);
  EXPECT_EQ(windowed.rows[2].visible(), 2);
}

TEST(VllmCpu, NamesTheFormThatItsFrameworkPicks) {
  EXPECT_EQ(vllm_cpu_isa(Dtype::bf16, 32, 128), "amx");
  EXPECT_EQ(vllm_cpu_isa(Dtype::f16, 32, 128), "vec");
  EXPECT_EQ(vllm_cpu_isa(Dtype::bf16, 16, 128), "vec16");
  EXPECT_EQ(vllm_cpu_isa(Dtype::bf16, 128, 80), "vec16");
}

TEST(VllmCpu, RefusesWhatItHasNoArgumentFor) {
  const Problem p = sample_problem(Mode::decode, {{20, 1}});
  const auto reason = [&](auto change) {
    Problem changed = p;
    change(changed);
    const auto call = lower_vllm_cpu(changed, make_slot_map(changed));
    const auto* refused = std::get_if<Unsupported>(&call);
    return refused ? refused->reason : "";
  };
  EXPECT_EQ(reason([](Problem&) {}), "");
  EXPECT_EQ(reason([](Problem& q) { q.model.kv_dtype = Dtype::fp8_e4m3fn; }),
            "vllm_cpu takes a cache of q's type here, the layer has bf16 q over fp8_e4m3fn keys");
  EXPECT_EQ(reason([](Problem& q) { q.model.v_head_dim = 64; }),
            "vllm_cpu takes one head size for K and V");
  EXPECT_EQ(reason([](Problem& q) { q.model.head_dim = q.model.v_head_dim = 48; }),
            "vllm_cpu has no kernel for heads of 48");
  EXPECT_EQ(reason([](Problem& q) { q.model.k_descale = 0.5; }),
            "vllm_cpu has factors for fp8 caches only");
  EXPECT_EQ(reason([](Problem& q) { q.pool.page_size = 8; }),
            "vllm_cpu takes blocks of a multiple of 16 tokens, the pool has pages of 8");
  const std::string apart =
      "vllm_cpu keeps a head's tokens side by side in their block, and K's blocks and heads as far "
      "apart as V's";
  EXPECT_EQ(
      reason([](Problem& q) { q.pool.k = q.pool.v = {.page = 1024, .slot = 64, .head = 32}; }),
      apart);
  EXPECT_EQ(reason([](Problem& q) { q.pool.k.page = 2048; }), apart);
}

}  // namespace
}  // namespace attest
