#include "property_tests/support_table.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "property_tests/stub_backend.hpp"

namespace attest {
namespace {

using testing::HasSubstr;

const Feature& feature(std::string_view name) {
  for (const Feature& one : all_features()) {
    if (one.name == name) return one;
  }
  throw std::invalid_argument(std::string(name));
}

TEST(SupportTable, HasAPlainStepThatEveryHonestKernelTakes) {
  for (const Backend* backend : select_backends("scalar")) {
    const Support support = support_of(*backend, feature("plain"));
    EXPECT_TRUE(support.expressible) << backend->name();
    EXPECT_TRUE(support.answer) << backend->name() << ": " << support.answer.reason;
  }
}

TEST(SupportTable, TellsEveryFeatureApartOnSomeKernel) {
  const StubBackend everything;
  StubBackend nothing;
  nothing.stub_capabilities = {.signature = Signature::unified,
                               .window = false,
                               .softcap = false,
                               .sinks = false,
                               .distinct_v_head_dim = false};
  nothing.stub_capabilities.page_sizes = {16};
  for (const char* const name : {"window", "softcap", "sinks", "narrower v", "f16", "page 48"}) {
    EXPECT_TRUE(support_of(everything, feature(name)).answer) << name;
    EXPECT_FALSE(support_of(nothing, feature(name)).answer) << name;
  }
  EXPECT_TRUE(support_of(nothing, feature("plain")).answer);
}

TEST(SupportTable, AsksTheKernelAndKeepsItsReason) {
  StubBackend stub;
  stub.stub_supports = Answer::no("not on Mondays");
  const Backend* const list[] = {&stub};
  const std::string text = support_text(list);
  EXPECT_THAT(text, HasSubstr("(plain, uneven"));
  EXPECT_THAT(text, HasSubstr("stub.unified@cpu: not on Mondays"));
}

TEST(SupportTable, LeavesOutWhatASignatureCannotPass) {
  const Backend& extend = *select_backends("scalar.extend").front();
  EXPECT_TRUE(support_of(extend, feature("draft tree")).expressible);
  EXPECT_FALSE(support_of(StubBackend{}, feature("draft tree")).expressible);
}

}  // namespace
}  // namespace attest
