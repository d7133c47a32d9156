#include "contracts/problem.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>

namespace attest {
namespace {

using testing::HasSubstr;

Problem verify_problem() {
  Problem p;
  p.model = {.num_q_heads = 8, .num_kv_heads = 2, .head_dim = 64, .v_head_dim = 64};
  p.pool = {.page_size = 16, .num_pages = 32};
  p.mode = Mode::target_verify;
  p.requests = {{.sequence = 1, .committed = 131, .new_tokens = 4},
                {.sequence = 2, .committed = 40, .new_tokens = 3}};
  return p;
}

TEST(Problem, ALegalOneHasNoError) { EXPECT_EQ(problem_error(verify_problem()), std::nullopt); }

TEST(Problem, NamesAreReadBack) {
  for (const Mode m : {Mode::decode, Mode::idle, Mode::extend, Mode::mixed, Mode::target_verify,
                       Mode::draft_extend_v2, Mode::draft_decode}) {
    EXPECT_EQ(mode_from_name(name(m)), m);
  }
  for (const Path p : {Path::eager, Path::capture, Path::replay}) {
    EXPECT_EQ(path_from_name(name(p)), p);
  }
  for (const Placement p : {Placement::permuted, Placement::sequential, Placement::high}) {
    EXPECT_EQ(placement_from_name(name(p)), p);
  }
  EXPECT_FALSE(mode_from_name("verify"));
}

struct Illegal {
  const char* says;
  std::function<void(Problem&)> change;
};

// Each says which field it names and with which value.
TEST(Problem, EachIllegalFieldIsNamedWithItsValue) {
  const std::int64_t huge = std::numeric_limits<std::int64_t>::max();
  const Illegal cases[] = {
      {"model.num_q_heads = 0", [](Problem& p) { p.model.num_q_heads = 0; }},
      {"model.num_q_heads = 9", [](Problem& p) { p.model.num_q_heads = 9; }},
      {"model.num_kv_heads = -1", [](Problem& p) { p.model.num_kv_heads = -1; }},
      {"model.head_dim", [&](Problem& p) { p.model.head_dim = huge; }},
      {"model.v_head_dim = 0", [](Problem& p) { p.model.v_head_dim = 0; }},
      {"floating", [](Problem& p) { p.model.kv_dtype = Dtype::int32; }},
      {"softmax_scale", [](Problem& p) { p.model.softmax_scale = std::nan(""); }},
      {"softcap", [](Problem& p) { p.model.softcap = -1; }},
      {"model.window = 0", [](Problem& p) { p.model.window = 0; }},
      {"descales", [](Problem& p) { p.model.k_descale = 0; }},
      {"mla", [](Problem& p) { p.model.mla = true; }},
      {"encoder_tokens = 0", [](Problem& p) { p.model.cross_attention = true; }},
      {"pool.page_size = 0", [](Problem& p) { p.pool.page_size = 0; }},
      {"pool.num_pages", [&](Problem& p) { p.pool.num_pages = huge; }},
      {"pool.k.slot = -1", [](Problem& p) { p.pool.k.slot = -1; }},
      {"larger than 2^50", [](Problem& p) { p.pool.v.page = std::int64_t{1} << 48; }},
      {"requests.size() = 0", [](Problem& p) { p.requests.clear(); }},
      {"requests[1].sequence = -1", [](Problem& p) { p.requests[1].sequence = -1; }},
      {"requests[1].committed", [&](Problem& p) { p.requests[1].committed = huge; }},
      {"requests[0].new_tokens = -4", [](Problem& p) { p.requests[0].new_tokens = -4; }},
      {"requests[0].shared_prefix = 132", [](Problem& p) { p.requests[0].shared_prefix = 132; }},
      {"tree_parent has 1 entries", [](Problem& p) { p.requests[0].tree_parent = {-1}; }},
      {"tree_parent[1] = 1", [](Problem& p) { p.requests[1].tree_parent = {-1, 1, 0}; }},
      {"exclude each other",
       [](Problem& p) {
         p.requests[1].tree_parent = {-1, 0, 0};
         p.model.window = 8;
       }},
      {"pages the batch needs = 12", [](Problem& p) { p.pool.num_pages = 11; }},
      {"pool.slots has 1 entries", [](Problem& p) { p.pool.slots = {{{0, 135}}}; }},
      {"pool.slots[1] holds 42 tokens",
       [](Problem& p) { p.pool.slots = {{{0, 135}}, {{144, 42}}}; }},
      {"pool.slots[0][0].first = 512", [](Problem& p) { p.pool.slots = {{{512, 1}}, {}}; }},
      {"pool.slots[0][0].count = 0", [](Problem& p) { p.pool.slots = {{{5, 0}}, {}}; }},
      {"topk = 0", [](Problem& p) { p.topk = 0; }},
      {"pool.k: tokens or heads that share bytes: heads of 64 elements, strides head 1",
       [](Problem& p) { p.pool.k.head = 1; }},
      {"pool.v: tokens or heads that share bytes", [](Problem& p) { p.pool.v.slot = 64; }},
      {"pool.k: tokens or heads that share bytes", [](Problem& p) { p.pool.k.page = 64; }},
      {"pool.k.head = 1125899906842624", [](Problem& p) { p.pool.k.head = std::int64_t{1} << 50; }},
      {"model.softmax_scale = 1e+300", [](Problem& p) { p.model.softmax_scale = 1e300; }},
      {"model.softcap = 1e+300", [](Problem& p) { p.model.softcap = 1e300; }},
      {"model.softcap = 1e-300", [](Problem& p) { p.model.softcap = 1e-300; }},
      {"model.k_descale = 1e+38", [](Problem& p) { p.model.k_descale = 1e38; }},
      {"model.v_descale = 1e+38", [](Problem& p) { p.model.v_descale = 1e38; }},
      {"softmax_scale * q_descale * k_descale = 1e+40",
       [](Problem& p) {
         p.model.q_descale = p.model.k_descale = 1e20;
         p.model.softmax_scale = 1;
       }},
      {"model.v_descale = 1000",
       [](Problem& p) {
         p.model.out_dtype = Dtype::f16;
         p.model.v_descale = 1000;
       }},
  };
  for (const Illegal& illegal : cases) {
    Problem p = verify_problem();
    illegal.change(p);
    const auto error = problem_error(p);
    ASSERT_TRUE(error) << illegal.says;
    EXPECT_THAT(*error, HasSubstr(illegal.says));
  }
}

TEST(Problem, AHugeBatchIsRefusedBeforeAnythingIsAllocated) {
  Problem p = verify_problem();
  p.pool = {.page_size = 1, .num_pages = std::int64_t{1} << 29};
  p.requests.assign(100, {.sequence = 1, .committed = std::int64_t{1} << 30, .new_tokens = 1});
  const auto error = problem_error(p);
  ASSERT_TRUE(error);
  EXPECT_THAT(*error, HasSubstr("pages of all requests together"));
}

TEST(Problem, IsDescribedInOneLine) {
  Problem p = verify_problem();
  p.model.window = 128;
  p.model.softcap = 30;
  EXPECT_EQ(describe(p),
            "target_verify 2 req 8:2 D64 bf16 page 16 kv [131+4, 40+3] window 128 softcap 30");
}

}  // namespace
}  // namespace attest
