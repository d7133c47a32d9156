#include "backends/hip/call_checks.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends/hip/hip_cases.hpp"
#include "contracts/work_lists.hpp"

namespace attest::hip {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

template <class CallType>
RunResult run_changed(std::string_view name, void (*change)(CallType&)) {
  constexpr bool mla = std::is_same_v<CallType, MlaDecodeCall>;
  const ScalarCase c = hip_case(mla ? Signature::mla_decode : Signature::unified, name);
  const TensorSource source(c.problem, c.recipe, 5);
  Call call = call_of(c, source);
  change(std::get<CallType>(call));
  return host_backend(c.signature).run(call, source, {});
}

struct BadUnified {
  const char* says;
  void (*change)(UnifiedCall&);
};

TEST(HipChecks, EveryBadUnifiedArgumentIsRefusedByName) {
  const BadUnified cases[] = {
      {"causal", [](UnifiedCall& c) { c.causal = false; }},
      {"seqused_k[0] = -1", [](UnifiedCall& c) { c.seqused_k.values[0] = -1; }},
      {"seqused_k[1] = 4294967296",
       [](UnifiedCall& c) { c.seqused_k.values[1] = std::int64_t{1} << 32; }},
      {"block_table ends at entry", [](UnifiedCall& c) { c.seqused_k.values[3] = 1 << 20; }},
      {"cu_seqlens_q[2] = 0, after 4", [](UnifiedCall& c) { c.cu_seqlens_q.values[2] = 0; }},
      {"cu_seqlens_q[0] = -3", [](UnifiedCall& c) { c.cu_seqlens_q.values[0] = -3; }},
      {"cu_seqlens_q has 2 entries",
       [](UnifiedCall& c) { c.cu_seqlens_q = int_array(Dtype::int32, {0, 4}); }},
      {"is outside the pool's 64 pages", [](UnifiedCall& c) { c.block_table.values[0] = 64; }},
      {"block_table[0] = -1", [](UnifiedCall& c) { c.block_table.values[0] = -1; }},
      {"no multiple of 3 kv heads", [](UnifiedCall& c) { c.k.shape[2] = c.v.shape[2] = 3; }},
      {"k has 2 heads, v has 1", [](UnifiedCall& c) { c.v.shape[2] = 1; }},
      {"out has 1 heads", [](UnifiedCall& c) { c.out = contiguous(Dtype::bf16, {14, 1, 64}); }},
      {"block_table has 1 rows",
       [](UnifiedCall& c) { c.block_table = int_matrix(Dtype::int32, 1, 2, {0, 1}); }},
  };
  for (const BadUnified& bad : cases) {
    const RunResult result = run_changed<UnifiedCall>("Plain", bad.change);
    ASSERT_TRUE(result.raised) << bad.says;
    EXPECT_THAT(*result.raised, HasSubstr(bad.says));
  }
}

struct BadMla {
  const char* says;
  void (*change)(MlaDecodeCall&);
};

TEST(HipChecks, EveryBadMlaArgumentIsRefusedByName) {
  const BadMla cases[] = {
      {"logit_cap", [](MlaDecodeCall& c) { c.logit_cap = 30; }},
      {"max_seqlen_q = 0", [](MlaDecodeCall& c) { c.max_seqlen_q = 0; }},
      {"kv_indptr[1] = -2", [](MlaDecodeCall& c) { c.kv_indptr.values[1] = -2; }},
      {"kv_indices ends at entry", [](MlaDecodeCall& c) { c.kv_indptr.values[4] += 10; }},
      {"is outside the pool's", [](MlaDecodeCall& c) { c.kv_indices.values[3] = 1 << 20; }},
      {"page_size = 16", [](MlaDecodeCall& c) { c.page_size = 16; }},
  };
  for (const BadMla& bad : cases) {
    const RunResult result = run_changed<MlaDecodeCall>("Verify", bad.change);
    ASSERT_TRUE(result.raised) << bad.says;
    EXPECT_THAT(*result.raised, HasSubstr(bad.says));
  }
}

TEST(HipChecks, CellsThatNoRowSeesMayHoldAnything) {
  const RunResult result = run_changed<UnifiedCall>("Window", [](UnifiedCall& c) {
    c.block_table.values[0] = -7;       // before the window
    c.block_table.values[9] = 1 << 30;  // behind the last key
    c.block_table.values[static_cast<std::size_t>(3 * c.block_table.size(1))] = -1;
  });
  EXPECT_FALSE(result.raised) << *result.raised;
}

TEST(HipChecks, RowsPastTheTensorsAreLeftOutWithALint) {
  const RunResult result =
      run_changed<UnifiedCall>("Plain", [](UnifiedCall& c) { c.cu_seqlens_q.values[4] = 20; });
  EXPECT_FALSE(result.raised) << *result.raised;
  ASSERT_EQ(result.lints.size(), 1U);
  EXPECT_THAT(result.lints[0], HasSubstr("request 3 rows [9, 20) of 14"));
  EXPECT_THAT(result.damage, IsEmpty());
}

TEST(HipChecks, TypesTheKernelIsNotBuiltForAreNotClaimed) {
  const ScalarCase c = hip_case(Signature::unified, "Plain");
  const TensorSource source(c.problem, c.recipe, 5);
  auto call = std::get<UnifiedCall>(call_of(c, source));
  const Backend& backend = host_backend(Signature::unified);
  EXPECT_TRUE(backend.supports(call));
  UnifiedCall mixed = call;
  mixed.k.dtype = mixed.v.dtype = Dtype::f16;
  EXPECT_THAT(backend.supports(mixed).reason, HasSubstr("bf16 queries over f16 keys"));
  UnifiedCall wide = call;
  wide.q = contiguous(Dtype::bf16, {14, 8, 320});
  EXPECT_THAT(backend.supports(wide).reason, HasSubstr("head sizes 320"));
  UnifiedCall two = call;
  two.v.dtype = Dtype::fp8_e4m3fn;
  EXPECT_THAT(backend.supports(two).reason, HasSubstr("different types"));
}

TEST(HipChecks, WorkListsAreNotClaimedAndEmptyOffsetsGiveNoRows) {
  const ScalarCase c = hip_case(Signature::mla_decode, "Verify");
  const TensorSource source(c.problem, c.recipe, 5);
  auto call = std::get<MlaDecodeCall>(call_of(c, source));
  const Backend& backend = host_backend(Signature::mla_decode);
  EXPECT_TRUE(backend.supports(call));
  EXPECT_THAT(backend.supports(with_work_lists(call, 3)).reason, HasSubstr("no work lists"));
  call.qo_indptr = int_array(Dtype::int32, {});
  const RunResult result = backend.run(call, source, {});
  if (!result.raised) {
    EXPECT_EQ(result.out.untouched.front(), 1);
  }
}

}  // namespace
}  // namespace attest::hip
