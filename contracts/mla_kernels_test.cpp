#include "contracts/mla_kernels.hpp"

#include <gtest/gtest.h>

#include <set>
#include <tuple>

#include "contracts/rules.hpp"
#include "contracts/signatures.hpp"
#include "contracts/signatures/sample_problems.hpp"

namespace attest {
namespace {

constexpr Dtype fp8 = Dtype::fp8_e4m3fnuz;

TEST(MlaKernels, StandOnceEach) {
  std::set<std::tuple<std::string_view, bool, bool, std::int64_t, bool>> seen;
  for (const MlaKernel& k : mla_kernels()) {
    EXPECT_TRUE(seen.insert({k.gpu, k.fp8_q, k.fp8_cache, k.heads, k.persistent}).second)
        << k.gpu << ", " << k.heads << " heads";
    EXPECT_GE(k.longest, 0);
    EXPECT_FALSE(k.fp8_q && !k.fp8_cache);
  }
}

TEST(MlaKernels, SayWhereALengthRuns) {
  EXPECT_EQ(mla_support(fp8, fp8, 16, 4).where,
            "gfx942, gfx942 with work lists, gfx950, gfx950 with work lists");
  EXPECT_EQ(mla_support(fp8, fp8, 16, 8).where, "gfx950 with work lists");
  EXPECT_EQ(mla_support(Dtype::bf16, fp8, 16, 4).where,
            "gfx942 with work lists, gfx950 with work lists");
  EXPECT_EQ(mla_support(Dtype::bf16, fp8, 16, 5).where, "");
  EXPECT_TRUE(mla_support(Dtype::bf16, fp8, 16, 5).known);
  EXPECT_EQ(mla_support(Dtype::bf16, Dtype::bf16, 16, 8).where,
            "gfx942, gfx950, gfx950 with work lists");
  EXPECT_EQ(mla_support(Dtype::bf16, Dtype::bf16, 8, 4).where, "");
  EXPECT_FALSE(mla_support(Dtype::bf16, Dtype::bf16, 24, 1).known);
  EXPECT_EQ(mla_support(Dtype::bf16, Dtype::bf16, 16, 0).where, "");
}

std::string finding(Dtype q, Dtype cache, std::int64_t heads, std::int64_t length) {
  Problem p = sample_mla_problem(Mode::target_verify, {{18, length}});
  p.model.num_q_heads = heads;
  p.model.q_dtype = q;
  p.model.kv_dtype = cache;
  if (is_fp8(q)) p.model.q_descale = p.model.k_descale = p.model.v_descale = 0.5;
  const SlotMap slots = make_slot_map(p);
  const auto lowered = lower_mla_decode(p, slots);
  if (const auto* refused = std::get_if<Unsupported>(&lowered)) return refused->reason;
  const auto call = std::get<MlaDecodeCall>(lowered);
  const Report report = check(call, {p, slots});
  for (const Finding& f : report.findings()) {
    if (f.rule == "draft_length.has_a_kernel") return f.expected;
  }
  return "";
}

TEST(MlaKernels, DecideWhatTheRuleAdvises) {
  EXPECT_EQ(finding(Dtype::bf16, Dtype::bf16, 16, 4), "");
  EXPECT_EQ(finding(Dtype::bf16, Dtype::bf16, 8, 4),
            "less: no GPU has a kernel for it with 8 heads");
  EXPECT_EQ(finding(fp8, fp8, 16, 4), "");
  EXPECT_EQ(finding(fp8, fp8, 128, 8),
            "another, or work lists: launches of fp8 q without them are listed by heads times "
            "length, and 128 * 8 is not");
}

}  // namespace
}  // namespace attest
