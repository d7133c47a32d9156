#include <gtest/gtest.h>

#include <algorithm>

#include "property_tests/every_backend.hpp"
#include "property_tests/rapidcheck_gen.hpp"
#include "property_tests/row_bits.hpp"

// Relations between two runs that need no reference (docs/numerics.md, "Relations"). They hold to
// the bit for the scalar kernel: it walks the keys of a row in tiles that start at the row's first
// key, whatever else the batch holds.

namespace attest {
namespace {

class Relations : public EveryBackend {
 protected:
  rc::Gen<Case> cases(std::int64_t max_kv = 160) const {
    return any_case({.signature = backend().capabilities().signature,
                     .capabilities = &backend().capabilities(),
                     .max_kv = max_kv,
                     .max_requests = 4});
  }
  void same(const Case& a, const Case& b) const {
    RC_ASSERT(run_rows(a, backend()) == run_rows(b, backend()));
  }
};

INSTANTIATE_TEST_SUITE_P(, Relations, testing::ValuesIn(names_of("scalar")), test_name_of);

TEST_P(Relations, RenamingPagesChangesNoBit) {
  EXPECT_TRUE(holds("renaming pages", [this] {
    const Case c = *cases();
    Case renamed = c;
    renamed.problem.pool.slots.clear();
    renamed.problem.pool.seed += 17;
    renamed.problem.pool.placement = Placement::permuted;
    same(c, renamed);
  }));
}

TEST_P(Relations, GrowingThePoolChangesNoBit) {
  EXPECT_TRUE(holds("a larger pool, pages at its end", [this] {
    const Case c = *cases();
    Case grown = c;
    grown.problem.pool.slots.clear();
    grown.problem.pool.num_pages += 100;
    grown.problem.pool.placement = Placement::high;
    same(c, grown);
  }));
}

TEST_P(Relations, UnusedTableColumnsChangeNoBit) {
  EXPECT_TRUE(holds("a longer context", [this] {
    const Case c = *cases();
    Case wide = c;
    wide.problem.context_len = c.problem.max_kv_len() + 500;
    same(c, wide);
  }));
}

TEST_P(Relations, PermutingTheBatchChangesNoBit) {
  EXPECT_TRUE(holds("the batch in reverse", [this] {
    Case c = *cases();
    c.recipe = Recipe::normal;  // the others place their keys batch by batch
    if (c.problem.topk > 1 && c.problem.mode == Mode::draft_decode) return;
    Case reversed = c;
    std::reverse(reversed.problem.requests.begin(), reversed.problem.requests.end());
    std::reverse(reversed.problem.pool.slots.begin(), reversed.problem.pool.slots.end());
    same(c, reversed);
  }));
}

TEST_P(Relations, EachRequestAloneGivesTheBitsOfTheBatch) {
  EXPECT_TRUE(holds("each request alone", [this] {
    Case c = *cases();
    c.recipe = Recipe::normal;
    c.problem.pool.slots.clear();
    if (c.problem.topk > 1 && c.problem.mode == Mode::draft_decode) return;
    const RowBits batch = run_rows(c, backend());
    RowBits alone;
    for (const Request& request : c.problem.requests) {
      Case one = c;
      one.problem.requests = {request};
      alone.merge(run_rows(one, backend()));
    }
    RC_ASSERT(alone == batch);
  }));
}

TEST_P(Relations, RunningTwiceGivesTheSameBits) {
  EXPECT_TRUE(holds("the same run", [this] {
    const Case c = *cases();
    same(c, c);
  }));
}

TEST_P(Relations, ThreadsChangeNoBit) {
  EXPECT_TRUE(holds("one thread or three", [this] {
    const Case c = *cases();
    RC_ASSERT(run_rows(c, backend(), {.threads = 1}) == run_rows(c, backend(), {.threads = 3}));
  }));
}

TEST_P(Relations, AWindowThatCoversEverythingIsNoWindow) {
  EXPECT_TRUE(holds("a window of the longest request", [this] {
    Case c = *cases();
    if (!backend().capabilities().window || c.problem.model.cross_attention) return;
    c.problem.pool.slots.clear();
    c.problem.model.window.reset();
    c.recipe = Recipe::normal;
    Case covered = c;
    covered.problem.model.window = c.problem.max_kv_len();
    const auto call = call_of(covered, make_slot_map(covered.problem));
    if (std::holds_alternative<Unsupported>(call)) return;  // not with trees or encoders
    if (problem_error(covered.problem)) return;
    same(c, covered);
  }));
}

}  // namespace
}  // namespace attest
