#include <gtest/gtest.h>

#include "property_tests/every_backend.hpp"
#include "property_tests/generators.hpp"
#include "property_tests/judge.hpp"

namespace attest {
namespace {

/// A correct kernel, emulated or not, fails no generated case, and hardly any generated case is one
/// that could not have failed. The long campaign is in docs/campaigns.md.
class HonestKernels : public EveryBackend {
 protected:
  void pass(std::uint64_t first, std::uint64_t count) const {
    const Capabilities& capabilities = backend().capabilities();
    std::uint64_t untrusted = 0;
    for (std::uint64_t i = first; i < first + count; ++i) {
      const Case c =
          generate(42, i, {.signature = capabilities.signature, .capabilities = &capabilities});
      const Judgement j = judge(c, backend());
      untrusted += j.verdict == Verdict::untrusted ? 1 : 0;
      if (j.verdict == Verdict::untrusted) continue;
      ASSERT_EQ(j.verdict, Verdict::pass) << j.repro << '\n'
                                          << describe(c.problem) << '\n'
                                          << j.reason << '\n'
                                          << j.diagnosis;
    }
    EXPECT_LE(untrusted, count / 50);
  }
};

INSTANTIATE_TEST_SUITE_P(, HonestKernels, testing::ValuesIn(names_of("")), test_name_of);

// Three tests, so that two cores share them.
TEST_P(HonestKernels, PassTheFirstHundredCases) { pass(0, 100); }
TEST_P(HonestKernels, PassTheSecondHundredCases) { pass(100, 100); }
TEST_P(HonestKernels, PassTheThirdHundredCases) { pass(200, 100); }

}  // namespace
}  // namespace attest
