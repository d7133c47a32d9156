#include "backends/profiles.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "backends/embedded_profiles.hpp"
#include "backends/registry.hpp"

namespace attest {
namespace {

using testing::HasSubstr;

std::string good() { return std::string(embedded_profiles().front().json); }

/// The good profile with the first `from` replaced.
std::string changed(const std::string& from, const std::string& to) {
  std::string text = good();
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string error_of(const std::string& json) {
  try {
    parse_profile(json, "some.json");
  } catch (const ProfileError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

// The engine may differ: emulated tiles round like real ones and share their profile.
TEST(Profiles, OfEveryBackendSayWhichKernelTheyAreOf) {
  for (const Backend* backend : all_backends()) {
    const BackendName name = split_backend_name(backend->name());
    EXPECT_FALSE(backend->profile().engine.empty());
    EXPECT_TRUE(backend->profile().implementation.ends_with("." + name.signature));
    EXPECT_GE(backend->profile().revision, 1);
  }
}

TEST(Profiles, ReadWhatTheFileSays) {
  const NumericsProfile profile = parse_profile(good(), "some.json");
  EXPECT_EQ(profile.p_dtype, Dtype::bf16);
  EXPECT_TRUE(profile.p_follows_q_dtype);
  EXPECT_GT(profile.z_limit.at("normal"), 0);
}

TEST(Profiles, NameTheFileThePlaceAndTheValueOfAMistake) {
  EXPECT_THAT(error_of(changed("\"bf16\"", "\"bf17\"")),
              HasSubstr("some.json: /p_dtype: is not a floating dtype: \"bf17\""));
  EXPECT_THAT(error_of(changed("\"schema\": 1", "\"schema\": 2")), HasSubstr("/schema: "));
  EXPECT_THAT(error_of(changed("\"revision\": ", "\"revision\": -")), HasSubstr("/revision: "));
  EXPECT_THAT(error_of(changed("\"normal\": ", "\"normal\": -")), HasSubstr("/z_limit/normal: "));
  EXPECT_THAT(error_of(changed("\"normal\"", "\"narmol\"")), HasSubstr("/z_limit/narmol: "));
  EXPECT_THAT(error_of(changed("\"kv_splits\"", "\"kv_split\"")),
              HasSubstr("/kv_splits: is missing"));
  EXPECT_THAT(error_of(changed("{", "{\"extra\": 1, ")), HasSubstr("/extra: is not a field"));
  EXPECT_THAT(error_of(changed("true", "1")), HasSubstr("must be true or false, is 1"));
  EXPECT_THAT(error_of(changed("}", "")), HasSubstr("some.json: /: is not JSON"));
  EXPECT_THAT(error_of("[]"), HasSubstr("some.json: /: must be an object, is array"));
}

TEST(Profiles, RefuseAnImplementationNobodyHas) {
  EXPECT_THROW(built_in_profile("scalar.unified", "rocm"), ProfileError);
  EXPECT_EQ(built_in_profile("scalar.unified", "cpu").implementation, "scalar.unified");
}

}  // namespace
}  // namespace attest
