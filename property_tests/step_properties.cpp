#include <gtest/gtest.h>

#include "property_tests/every_backend.hpp"
#include "property_tests/rapidcheck_gen.hpp"
#include "property_tests/row_bits.hpp"

// Relations between steps: what verification computes for a draft is what decoding it would have.

namespace attest {
namespace {

class Steps : public EveryBackend {
 protected:
  Case verify_case() const {
    Case c = *any_case({.signature = backend().capabilities().signature,
                        .capabilities = &backend().capabilities(),
                        .max_kv = 160,
                        .max_requests = 3});
    c.recipe = Recipe::normal;  // the others place their keys by the rows of the batch
    c.problem.pool.slots.clear();
    return c;
  }
};

INSTANTIATE_TEST_SUITE_P(, Steps, testing::ValuesIn(names_of("scalar.unified,scalar.mla_decode")),
                         test_name_of);

TEST_P(Steps, VerifyingDraftsEqualsDecodingThemOneByOne) {
  EXPECT_TRUE(holds("verify = decode steps", [this] {
    Case c = verify_case();
    // A window starts each row's keys elsewhere: other keys share a tile, and the roundings differ.
    c.problem.model.window.reset();
    const RowBits verified = run_rows(c, backend());
    RowBits decoded;
    for (const Request& request : c.problem.requests) {
      for (std::int64_t t = 0; request.live && t < request.new_tokens; ++t) {
        Case step = c;
        Request one = request;
        one.committed += t;
        one.new_tokens = 1;
        step.problem.requests = {one};
        step.problem.mode = Mode::decode;
        step.problem.num_draft_tokens.reset();
        decoded.merge(run_rows(step, backend()));
      }
    }
    RC_ASSERT(decoded == verified);
  }));
}

class Trees : public Steps {};

INSTANTIATE_TEST_SUITE_P(, Trees, testing::ValuesIn(names_of("scalar.extend")), test_name_of);

TEST_P(Trees, AChainWithAMaskEqualsTheCausalStep) {
  EXPECT_TRUE(holds("chain mask = causal", [this] {
    Case c = verify_case();
    Problem& p = c.problem;
    p.mode = Mode::target_verify;
    p.model.window.reset();
    p.model.cross_attention = false;
    p.topk = 1;
    for (Request& request : p.requests) {
      request.new_tokens = p.requests[0].new_tokens;
      request.tree_parent.clear();
      request.encoder_tokens = 0;
    }
    p.pool.num_pages = pages_needed(p) + 3;
    Case chain = c;
    chain.problem.topk = 2;
    for (Request& request : chain.problem.requests) {
      for (std::int64_t t = 0; t < request.new_tokens; ++t) request.tree_parent.push_back(t - 1);
    }
    const auto call = std::get<Call>(call_of(chain, make_slot_map(chain.problem)));
    RC_ASSERT(std::get<ExtendCall>(call).tree_mask.has_value());
    RC_ASSERT(run_rows(chain, backend()) == run_rows(c, backend()));
  }));
}

class Unified : public Steps {};

INSTANTIATE_TEST_SUITE_P(, Unified, testing::ValuesIn(names_of("scalar.unified")), test_name_of);

TEST_P(Unified, TheDtypeOfSequsedKChangesNoBit) {
  EXPECT_TRUE(holds("int32 = int64", [this] {
    Case c = verify_case();
    const RowBits wide = run_rows(c, backend());
    c.fault = "seqused_k_int32";
    RC_ASSERT(run_rows(c, backend()) == wide);
  }));
}

TEST_P(Unified, ExpandedKvHeadsChangeNoBit) {
  EXPECT_TRUE(holds("stride-0 heads = GQA", [this] {
    Case c = verify_case();
    if (c.problem.model.num_q_heads == c.problem.model.num_kv_heads) return;
    c.problem.model.num_q_heads /= c.problem.model.num_kv_heads;
    c.problem.model.num_kv_heads = 1;
    c.problem.pool.k = c.problem.pool.v = {};
    const RowBits shared = run_rows(c, backend());
    c.fault = "kv_heads_expanded";
    RC_ASSERT(run_rows(c, backend()) == shared);
  }));
}

}  // namespace
}  // namespace attest
