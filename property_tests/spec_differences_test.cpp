#include "property_tests/spec_differences.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "backends/registry.hpp"
#include "contracts/call_fields.hpp"
#include "contracts/signatures.hpp"
#include "property_tests/generators.hpp"

namespace attest {
namespace {

using testing::HasSubstr;

const std::filesystem::path corpus =
    std::filesystem::path(ATTEST_SOURCE_DIR) / "fixtures/corpus/captured";

SpecComparison comparison_of(const std::string& id) {
  SpecComparison found;
  read_captured(corpus, [&](const CapturedCall& call) {
    if (call.id == id) found = compare_with_spec(call);
  });
  EXPECT_EQ(found.id, id);
  return found;
}

bool has(const SpecComparison& comparison, const std::string& where) {
  return std::ranges::count(comparison.differences, where, &SpecDifference::where) > 0;
}

TEST(Spec, EqualsItself) {
  for (const Signature signature : generated_signatures) {
    const Backend& kernel = *select_backends("scalar." + std::string(name(signature))).front();
    const Case c = generate(3, 5, {.signature = signature, .capabilities = &kernel.capabilities()});
    const SlotMap slots = make_slot_map(c.problem);
    const auto lowered = lower(signature, c.problem, slots);
    ASSERT_TRUE(std::holds_alternative<Call>(lowered)) << name(signature);
    const Call& call = std::get<Call>(lowered);
    EXPECT_TRUE(spec_differences(call, call, c.problem).differences.empty()) << name(signature);
  }
}

TEST(Spec, NamesTheElementAndTheRuleThatRejectsIt) {
  const SpecComparison c = comparison_of("sglang-0162");
  ASSERT_TRUE(has(c, "qo_indptr[1]"));
  ASSERT_TRUE(has(c, "max_len_extend"));
  EXPECT_THAT(spec_text(c), HasSubstr("qo_indptr[1]: expected 2, got 4  (rejected by "));
}

TEST(Spec, NamesADtype) {
  const SpecComparison c = comparison_of("sglang-0005");
  EXPECT_TRUE(has(c, "seqused_k.dtype"));
  EXPECT_THAT(spec_text(c), HasSubstr("expected int64, got int32"));
}

TEST(Spec, ComparesSlotsWhateverPoolRowHoldsThem) {
  Case c = generate(3, 1, {.signature = Signature::extend});
  const SlotMap slots = make_slot_map(c.problem);
  const Call right = std::get<Call>(lower(Signature::extend, c.problem, slots));
  ExtendCall call = std::get<ExtendCall>(right);
  // The rows of the pool in another order, and the indices with them.
  const auto width = static_cast<std::size_t>(call.req_to_token.size(1));
  std::vector<std::int64_t> moved;
  for (std::size_t row = static_cast<std::size_t>(call.req_to_token.size(0)); row-- > 0;) {
    const auto first = call.req_to_token.values.begin() + static_cast<std::ptrdiff_t>(row * width);
    moved.insert(moved.end(), first, first + static_cast<std::ptrdiff_t>(width));
  }
  for (std::int64_t& row : call.req_pool_indices.values) row = call.req_to_token.size(0) - 1 - row;
  call.req_to_token.values = moved;
  EXPECT_TRUE(spec_differences(right, call, c.problem).differences.empty());
}

TEST(Spec, CountsElementsPastTheFew) {
  Case c = generate(3, 1, {.signature = Signature::mla_decode});
  const SlotMap slots = make_slot_map(c.problem);
  const Call right = std::get<Call>(lower(Signature::mla_decode, c.problem, slots));
  MlaDecodeCall call = std::get<MlaDecodeCall>(right);
  for (std::int64_t& slot : call.kv_indices.values) ++slot;
  const SpecComparison comparison = spec_differences(right, call, c.problem, 2);
  EXPECT_EQ(comparison.differences.size(), 2U);
  EXPECT_EQ(comparison.more, static_cast<std::int64_t>(call.kv_indices.values.size()) - 2);
}

TEST(Spec, CountsTheCapturedCallsThatDiffer) {
  SpecSummary summary;
  read_captured(corpus, [&](const CapturedCall& call) { summary.add(compare_with_spec(call)); });
  EXPECT_EQ(summary.calls, 191);
  EXPECT_GT(summary.rejected, 50);
  EXPECT_EQ(summary.exit_code(), 1);
}

TEST(Spec, HasAnExitCodeForNothing) {
  SpecSummary summary;
  EXPECT_EQ(summary.exit_code(), 64);
  summary.add({.unsupported = "no truth"});
  EXPECT_EQ(summary.exit_code(), 3);
  summary.add({});
  EXPECT_EQ(summary.exit_code(), 0);
}

}  // namespace
}  // namespace attest
