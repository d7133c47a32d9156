#include "property_tests/launch_limits.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends/registry.hpp"
#include "property_tests/generators.hpp"
#include "property_tests/judge.hpp"

namespace attest {
namespace {

using testing::HasSubstr;

Problem verify() {
  Problem p;
  p.mode = Mode::target_verify;
  p.model.num_q_heads = 4;
  p.model.num_kv_heads = 2;
  p.requests = {{.sequence = 1, .committed = 30, .new_tokens = 3},
                {.sequence = 2, .committed = 9, .new_tokens = 2}};
  p.pool.num_pages = 16;
  return p;
}

/// A call of `verify()`, changed by `edit`.
template <class CallType, class Edit>
Case edited(Signature signature, Edit&& edit, Problem p = verify()) {
  Case c{.problem = std::move(p), .signature = signature};
  c.call = std::get<Call>(call_of(c, make_slot_map(c.problem)));
  edit(std::get<CallType>(*c.call));
  return c;
}

std::string refusal(const Case& c, std::int64_t kv_splits = 0) {
  return cannot_launch(*c.call, c.problem, make_slot_map(c.problem), kv_splits).value_or("");
}

TEST(LaunchLimits, LetEveryGeneratedCasePass) {
  for (const Signature signature : generated_signatures) {
    for (std::uint64_t i = 0; i < 100; ++i) {
      Case c = generate(21, i, {.signature = signature});
      c.call = std::get<Call>(call_of(c, make_slot_map(c.problem)));
      EXPECT_EQ(refusal(c), "") << c.origin << ' ' << describe(c.problem);
    }
  }
}

TEST(LaunchLimits, NameAQueryWhoseStrideTakesTheMachinesMemory) {
  const Case c = edited<ExtendCall>(
      Signature::extend, [](ExtendCall& e) { e.q_extend.strides[0] = std::int64_t{1} << 30; });
  EXPECT_EQ(refusal(c),
            "q_extend of shape [5, 4, 64] with strides [1073741824, 64, 1] reaches past "
            "1073741824 bytes, the most that attest launches");
}

TEST(LaunchLimits, NameATensorWhoseElementsHaveAnotherSizeThanItsData) {
  const Case q =
      edited<UnifiedCall>(Signature::unified, [](UnifiedCall& u) { u.q.dtype = Dtype::f32; });
  EXPECT_EQ(refusal(q),
            "q of f32 has elements of another size than the problem's bf16: there is no data to "
            "fill it with");
  const Case k = edited<UnifiedCall>(Signature::unified,
                                     [](UnifiedCall& u) { u.k.dtype = Dtype::fp8_e4m3fn; });
  EXPECT_THAT(refusal(k), HasSubstr("k of fp8_e4m3fn has elements"));
  const Case fresh =
      edited<ExtendCall>(Signature::extend, [](ExtendCall& e) { e.v_extend->dtype = Dtype::f32; });
  EXPECT_THAT(refusal(fresh), HasSubstr("v_extend of f32"));
}

TEST(LaunchLimits, SurviveNumbersWhoseProductsOverflow) {
  const Case c = edited<UnifiedCall>(Signature::unified, [](UnifiedCall& u) {
    u.out.shape[0] = u.out.strides[0] = std::int64_t{1} << 62;
  });
  EXPECT_THAT(refusal(c), HasSubstr("out of shape [4611686018427387904, 4, 64]"));
}

TEST(LaunchLimits, NameAPoolOfMoreAddressSpaceThanCanBeMapped) {
  const Case c = edited<UnifiedCall>(
      Signature::unified, [](UnifiedCall& u) { u.k.strides[0] = std::int64_t{1} << 40; });
  EXPECT_THAT(refusal(c), HasSubstr("k of shape [16, 16, 2, 64] with strides [1099511627776"));
  EXPECT_THAT(refusal(c), HasSubstr("reaches past 274877906944 bytes"));
}

TEST(LaunchLimits, NameAPoolWhosePagesInUseTakeTheMachinesMemory) {
  Problem p = verify();
  p.pool.k = p.pool.v = {.page = std::int64_t{1} << 32, .slot = std::int64_t{1} << 28};
  const Case c = edited<UnifiedCall>(Signature::unified, [](UnifiedCall&) {}, p);
  EXPECT_THAT(refusal(c), HasSubstr("k of shape [16, 16, 2, 64]"));
  EXPECT_THAT(refusal(c), HasSubstr("attest launches at most 2147483648"));
}

TEST(LaunchLimits, NameATensorThatTheModelHasNoDataFor) {
  const Case c = edited<ExtendCall>(
      Signature::extend, [](ExtendCall& e) { e.v_extend = contiguous(Dtype::bf16, {5, 2, 1024}); });
  EXPECT_THAT(refusal(c),
              HasSubstr("v_extend of shape [5, 2, 1024] with strides [2048, 1024, 1] holds 1024 "
                        "elements per head where the model has 64"));
}

TEST(LaunchLimits, NameSplitsThatTakeTheMachinesMemory) {
  const Case c = edited<UnifiedCall>(Signature::unified, [](UnifiedCall& u) {
    u.launch = Launch{.form = "3d", .kv_splits = std::int64_t{1} << 40};
  });
  EXPECT_THAT(refusal(c), HasSubstr("launch.kv_splits = 1099511627776"));
  const Case plain = edited<UnifiedCall>(Signature::unified, [](UnifiedCall&) {});
  EXPECT_EQ(refusal(plain, 8), "");
  EXPECT_THAT(refusal(plain, std::int64_t{1} << 31), HasSubstr("the forced split count"));
}

TEST(LaunchLimits, NameAPrefillOfAnAfternoon) {
  Problem p = verify();
  p.mode = Mode::extend;
  p.requests = {{.committed = 1 << 20, .new_tokens = 1 << 12}};
  p.pool.num_pages = pages_needed(p) + 1;
  const Case c = edited<UnifiedCall>(Signature::unified, [](UnifiedCall&) {}, p);
  EXPECT_THAT(refusal(c), HasSubstr("multiply-adds"));
  p.requests[0].new_tokens = 4;
  const Case few = edited<UnifiedCall>(Signature::unified, [](UnifiedCall&) {}, p);
  EXPECT_EQ(refusal(few), "");
}

TEST(LaunchLimits, MakeAnUnsupportedCaseWithTheReason) {
  const Case c = edited<ExtendCall>(
      Signature::extend, [](ExtendCall& e) { e.q_extend.strides[0] = std::int64_t{1} << 40; });
  const Backend& backend = *select_backends("scalar.extend@cpu").front();
  const Judgement j = judge(c, backend, {.rules = RulesMode::report});
  EXPECT_EQ(j.verdict, Verdict::unsupported);
  EXPECT_THAT(j.reason, HasSubstr("q_extend of shape"));
}

}  // namespace
}  // namespace attest
