#include <gtest/gtest.h>

#include "property_tests/every_backend.hpp"
#include "property_tests/judge.hpp"
#include "property_tests/rapidcheck_gen.hpp"

namespace attest {
namespace {

class Agreement : public EveryBackend {};

INSTANTIATE_TEST_SUITE_P(, Agreement, testing::ValuesIn(names_of("")), test_name_of);

TEST_P(Agreement, WithTheReferenceHoldsForDrawnCases) {
  EXPECT_TRUE(holds("kernel = reference", [this] {
    const Capabilities& capabilities = backend().capabilities();
    const Case c = *any_case({.signature = capabilities.signature,
                              .capabilities = &capabilities,
                              .max_kv = 200,
                              .max_requests = 4},
                             /*seed=*/5);
    const Judgement judgement = judge(c, backend());
    RC_ASSERT(judgement.verdict == Verdict::pass);
  }));
}

}  // namespace
}  // namespace attest
