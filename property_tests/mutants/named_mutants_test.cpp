#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <string>

#include "property_tests/mutants/campaign.hpp"
#include "property_tests/mutants/explained.hpp"

namespace attest {
namespace {

/// Kernels that really make the mistakes, one or more of each file of property_tests/misread: a
/// misreading that says one thing and computes another explains none of them.
class NamedMutants : public testing::TestWithParam<const char*> {};

constexpr const char* of_each_part[] = {
    "faulty-first_row_of_the_request_before.unified@cpu",    // owners
    "faulty-full_last_page_is_empty.vllm_cpu@cpu",           // parts, where they are full
    "faulty-heads_taken_as_dense.unified@cpu",               // strides
    "faulty-k_head_stride_zero.batch_prefill@cpu",           // heads, of K alone
    "faulty-kv_head_is_the_q_head.legacy_extend@cpu",        // heads
    "faulty-latent_v_behind_the_rope.mla_decode@cpu",        // exchanges, of elements
    "faulty-mask_begins_at_the_tile.extend@cpu",             // tree shapes, column begins
    "faulty-mask_bytes_reused.legacy_extend@cpu",            // trees
    "faulty-mask_row_stride_without_new.legacy_extend@cpu",  // trees
    "faulty-new_keys_from_row_zero.extend@cpu",              // rows of new keys
    "faulty-odd_page_behind_the_even_one.vllm_cpu@cpu",      // exchanges, of columns
    "faulty-page_size_taken_as_16.unified@cpu",              // lists
    "faulty-prefix_tail_dropped.legacy_extend@cpu",          // parts, left out
    "faulty-q_rows_before_heads.unified@cpu",                // rows of q
    "faulty-request_index_dropped.mla_decode@cpu",           // requests
    "faulty-causal_from_the_longest_request.unified@cpu",    // ranges, their ends
    "faulty-tail_places_score_zero.mla_decode@cpu",          // parts, as zeros
    "faulty-tree_seen_by_depth.extend@cpu",                  // tree shapes
    "faulty-v_block_of_v_dims.unified@cpu",                  // exchanges, steps of tiles
    "faulty-v_pairs_swapped.vllm_cpu@cpu",                   // exchanges in tiles
    "faulty-v_page_one_step_late.unified@cpu",               // positions, of V alone
    "faulty-window_of_the_last_row.batch_prefill@cpu",       // ranges, their begins
};
INSTANTIATE_TEST_SUITE_P(, NamedMutants, testing::ValuesIn(of_each_part), [](const auto& info) {
  std::string name = info.param;
  std::ranges::replace_if(name, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
});

TEST_P(NamedMutants, AreNamedByTheMistakeThatTheyMake) {
  const std::vector<const Mutant*> found = mutants_of("all", GetParam(), false);
  ASSERT_EQ(found.size(), 1U);
  const Trial trial = try_mutant(*found.front(), {.diagnose = true});
  EXPECT_EQ(trial.outcome, Outcome::killed) << trial.says;
  EXPECT_EQ(name(named(*found.front(), trial)), "first") << trial.diagnosis;
}

}  // namespace
}  // namespace attest
