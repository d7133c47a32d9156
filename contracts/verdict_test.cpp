#include "contracts/verdict.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace attest {
namespace {

constexpr Verdict all[] = {Verdict::pass,        Verdict::mismatch,    Verdict::rejected,
                           Verdict::unsupported, Verdict::unavailable, Verdict::untrusted,
                           Verdict::crashed,     Verdict::hung};

TEST(Verdict, NamesAreReadBackAndExplained) {
  for (const Verdict v : all) {
    EXPECT_EQ(verdict_from_name(name(v)), v);
    EXPECT_FALSE(meaning(v).empty());
  }
  EXPECT_FALSE(verdict_from_name("passed"));
}

TEST(Verdict, OnlyPassExitsWithZero) {
  for (const Verdict v : all) EXPECT_EQ(exit_code(v) == 0, v == Verdict::pass) << name(v);
}

TEST(Verdict, ABatchExitsWithItsWorstVerdict) {
  const std::vector<Verdict> order = {
      Verdict::crashed,     Verdict::mismatch,  Verdict::rejected, Verdict::unavailable,
      Verdict::unsupported, Verdict::untrusted, Verdict::pass};
  for (std::size_t worst = 0; worst < order.size(); ++worst) {
    const std::vector<Verdict> batch(order.rbegin(),
                                     order.rbegin() + static_cast<long>(order.size() - worst));
    EXPECT_EQ(exit_code(batch), exit_code(order[worst])) << name(order[worst]);
  }
}

TEST(Verdict, AnEmptyBatchIsNotAPass) {
  EXPECT_EQ(exit_code(std::span<const Verdict>{}), exit_usage);
}

}  // namespace
}  // namespace attest
