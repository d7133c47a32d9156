#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>

#include "backends/registry.hpp"
#include "fixtures/fixture.hpp"
#include "property_tests/replay.hpp"

namespace attest {
namespace {

const std::filesystem::path corpus = std::filesystem::path(ATTEST_SOURCE_DIR) / "fixtures/corpus";

/// Files of the folders whose fixtures have a verdict, relative to the corpus.
std::vector<std::string> files() {
  std::vector<std::string> names;
  for (const char* folder : {"accept", "reject", "regressions"}) {
    if (!std::filesystem::exists(corpus / folder)) continue;
    for (const auto& file : fixture_files({corpus / folder})) {
      names.push_back(std::filesystem::relative(file, corpus).string());
    }
  }
  return names;
}

std::string test_name(const testing::TestParamInfo<std::string>& info) {
  std::string text = info.param;
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return text;
}

class Corpus : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(, Corpus, testing::ValuesIn(files()), test_name);

/// Both sides, both rules modes, every honest backend of the signature that runs here.
TEST_P(Corpus, ReplaysAsItPromises) {
  int judged = 0;
  replay_file(corpus / GetParam(), {}, [&](const CaseResult& result) {
    ++judged;
    EXPECT_EQ(result.unexpected, "") << result.name << " on " << result.judgement.backend << '\n'
                                     << result.judgement.reason << '\n'
                                     << result.judgement.diagnosis;
  });
  // Calls of a signature that no backend runs are checked in fixtures/corpus_test.cpp.
  const std::string signature = load_fixture(corpus / GetParam()).signature;
  const bool runs = std::ranges::any_of(all_backends(), [&](const Backend* backend) {
    return name(backend->capabilities().signature) == signature;
  });
  EXPECT_GE(judged, runs ? 2 : 0);
}

TEST(CorpusFolders, HoldTheRegressionsOfTheOpeningBugs) {
  const std::vector<std::string> names = files();
  for (const char* bug : {"sglang-31221", "sglang-36541", "sglang-30105", "sglang-36430"}) {
    EXPECT_TRUE(std::any_of(names.begin(), names.end(), [&](const std::string& name) {
      return name.starts_with("regressions/") && name.find(bug) != std::string::npos;
    })) << bug;
  }
}

}  // namespace
}  // namespace attest
