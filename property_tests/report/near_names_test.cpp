#include "property_tests/report/near_names.hpp"

#include <gtest/gtest.h>

namespace attest {
namespace {

const std::vector<std::string> commands = {"doctor", "run", "replay", "check", "explain"};

TEST(NearNames, FindSwappedLetters) {
  EXPECT_EQ(near_names("rnu", commands), std::vector<std::string>{"run"});
}

TEST(NearNames, FindAPartOfALongName) {
  const std::vector<std::string> rules = {"seqused_k.counts_new_tokens", "heads.divide"};
  EXPECT_EQ(near_names("seqused", rules), std::vector<std::string>{rules[0]});
}

TEST(NearNames, StaySilentAboutDistantWords) {
  EXPECT_EQ(did_you_mean("bananas", commands), "");
  EXPECT_EQ(did_you_mean("", commands), "");
}

TEST(NearNames, ReadAsASentence) {
  EXPECT_EQ(did_you_mean("chek", commands), "; did you mean check?");
  const std::vector<std::string> similar = {"ab", "ac"};
  EXPECT_EQ(did_you_mean("a", similar), "; did you mean ab or ac?");
}

}  // namespace
}  // namespace attest
