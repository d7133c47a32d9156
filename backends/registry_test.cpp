#include "backends/registry.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace attest {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// A backend that exists only as a name.
class NamedBackend final : public Backend {
 public:
  NamedBackend(std::string name, Answer available)
      : name_(std::move(name)), available_(std::move(available)) {}
  std::string_view name() const override { return name_; }
  std::string_view says() const override { return "a name"; }
  const Capabilities& capabilities() const override { return capabilities_; }
  const NumericsProfile& profile() const override { return profile_; }
  Answer available() const override { return available_; }
  Answer supports(const Call&) const override { return Answer::no("it is only a name"); }
  RunResult run(const Call&, const TensorSource&, const RunOptions&) const override { return {}; }

 private:
  std::string name_;
  Answer available_;
  Capabilities capabilities_;
  NumericsProfile profile_;
};

std::vector<std::string> names(const std::vector<const Backend*>& backends) {
  std::vector<std::string> list;
  list.reserve(backends.size());
  for (const Backend* backend : backends) list.emplace_back(backend->name());
  return list;
}

std::string refusal(std::string_view selector) {
  try {
    select_backends(selector);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(BackendName, SplitsIntoItsThreeParts) {
  const BackendName name = split_backend_name("hip.mla_decode@rocjitsu");
  EXPECT_EQ(name.implementation, "hip");
  EXPECT_EQ(name.signature, "mla_decode");
  EXPECT_EQ(name.engine, "rocjitsu");
}

TEST(BackendName, IsRefusedWithoutAllThreeParts) {
  for (const std::string_view bad : {"", "scalar", "scalar.unified", "scalar@cpu", ".unified@cpu",
                                     "scalar.@cpu", "scalar.unified@", "a.b.c@d", "a.b@c@d"}) {
    EXPECT_THROW(split_backend_name(bad), std::invalid_argument) << bad;
  }
}

TEST(Registry, GivesEveryBackendAWellFormedAndUniqueName) {
  std::set<std::string> seen;
  for (const Backend* backend : all_backends()) {
    const BackendName name = split_backend_name(backend->name());
    EXPECT_TRUE(seen.insert(std::string(backend->name())).second) << backend->name();
    EXPECT_EQ(signature_from_name(name.signature), backend->capabilities().signature);
    EXPECT_FALSE(backend->says().empty());
  }
  EXPECT_GT(seen.size(), 50U);
}

TEST(Registry, SelectsEveryHonestBackendWithoutASelector) {
  const std::vector<std::string> selected = names(select_backends(""));
  EXPECT_THAT(selected, testing::IsSupersetOf({"scalar.unified@cpu", "scalar.extend@cpu",
                                               "scalar.decode@cpu", "scalar.mla_decode@cpu"}));
  for (const std::string& name : selected) EXPECT_FALSE(name.starts_with("faulty")) << name;
}

TEST(Registry, SelectsByNamePrefixAndList) {
  EXPECT_THAT(names(select_backends("scalar.unified@cpu")), ElementsAre("scalar.unified@cpu"));
  EXPECT_THAT(names(select_backends("scalar.decode")), ElementsAre("scalar.decode@cpu"));
  EXPECT_EQ(select_backends("scalar").size(), all_signatures.size());
  EXPECT_EQ(select_backends("scalar.").size(), all_signatures.size());
  EXPECT_THAT(names(select_backends("scalar.decode, scalar.unified,scalar.decode@cpu")),
              ElementsAre("scalar.decode@cpu", "scalar.unified@cpu"));
  EXPECT_GT(select_backends("faulty").size(), 50U);
  EXPECT_EQ(select_backends("faulty-stale_page").size(), 4U);
}

TEST(Registry, SelectsEverySignatureOnOneEngine) {
  EXPECT_EQ(names(select_backends("hip@host")),
            (std::vector<std::string>{"hip.unified@host", "hip.mla_decode@host"}));
  EXPECT_NE(refusal("hip@hos"), "nothing was thrown");
  EXPECT_NE(refusal("hi@host"), "nothing was thrown");
}

TEST(Registry, HasNoEmulatorInAnotherEnginesPlace) {
  for (const Backend* const backend : select_backends("hip@rocjitsu")) {
    EXPECT_NE(backend->available().reason.find("rocjitsu --config"), std::string::npos)
        << backend->available().reason;
  }
}

TEST(Registry, RefusesAPrefixThatEndsInsideAComponent) {
  EXPECT_THAT(refusal("scal"), HasSubstr("\"scal\""));
  EXPECT_THAT(refusal("scalar.dec"), HasSubstr("scalar.decode"));
}

TEST(Registry, NamesNearOnesWhenNothingMatches) {
  EXPECT_THAT(refusal("scaler.unified"), HasSubstr("scalar.unified"));
  EXPECT_THAT(refusal("scalar,faulty-stale_pages"), HasSubstr("faulty-stale_page"));
}

TEST(Registry, RefusesAnEmptyPartOfASelector) {
  for (const std::string_view bad : {",", "scalar,,", ",scalar", "scalar, "}) {
    EXPECT_THAT(refusal(bad), HasSubstr("empty part")) << bad;
    EXPECT_THROW(backends_to_run(bad), std::invalid_argument) << bad;
  }
}

TEST(Requirements, AreMetByAnAvailableBackendOfThatEngine) {
  EXPECT_THAT(unmet_requirements(""), IsEmpty());
  EXPECT_THAT(unmet_requirements("scalar@cpu"), IsEmpty());
}

TEST(Requirements, AreUnmetWithAReasonWhereTheBackendIsMissingOrNotAvailable) {
  const NamedBackend hip("hip.unified@rocm", Answer::no("no /dev/kfd on this machine"));
  const std::vector<const Backend*> from = {&hip};
  const std::vector<std::string> unmet = unmet_requirements("hip@rocm, amx@native", from);
  ASSERT_EQ(unmet.size(), 2U);
  EXPECT_THAT(unmet[0], HasSubstr("no /dev/kfd on this machine"));
  EXPECT_THAT(unmet[1], HasSubstr("amx@native is required"));
}

TEST(Requirements, AreNotMetByAHostOrEmulatedEngine) {
  const NamedBackend host("hip.unified@host", Answer{});
  const NamedBackend emulated("hip.unified@rocjitsu", Answer{});
  const NamedBackend trap("amx.extend@trap", Answer{});
  const std::vector<const Backend*> from = {&host, &emulated, &trap};
  const std::vector<std::string> unmet = unmet_requirements("hip@rocm,amx@native", from);
  ASSERT_EQ(unmet.size(), 2U);
  EXPECT_THAT(unmet[0], HasSubstr("only as @host, @rocjitsu"));
  EXPECT_THAT(unmet[1], HasSubstr("only as @trap"));
  EXPECT_THAT(unmet_requirements("hip@host", from), IsEmpty());
}

TEST(Requirements, AreMetByOneOfSeveralSignatures) {
  const NamedBackend missing("hip.extend@rocm", Answer::no("not built"));
  const NamedBackend present("hip.unified@rocm", Answer{});
  const std::vector<const Backend*> from = {&missing, &present};
  EXPECT_THAT(unmet_requirements("hip@rocm", from), IsEmpty());
}

TEST(Requirements, AreUnmetWhereAPartIsEmpty) {
  EXPECT_EQ(unmet_requirements(",,").size(), 3U);
  EXPECT_EQ(unmet_requirements("scalar@cpu,").size(), 1U);
}

TEST(Requirements, SayWhenOneIsMalformed) {
  for (const std::string_view bad : {"hip", "@rocm", "hip@", "hip.unified@rocm", " "}) {
    const std::vector<std::string> unmet = unmet_requirements(bad);
    ASSERT_EQ(unmet.size(), 1U) << bad;
    EXPECT_THAT(unmet[0], HasSubstr("<impl>@<engine>"));
  }
}

}  // namespace
}  // namespace attest
