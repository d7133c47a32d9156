#pragma once

#include <string>

#include "backends/backend.hpp"
#include "backends/scalar/fault.hpp"

namespace attest {

/// The scalar kernel behind one signature, honest or with one fault. Any machine can run it.
class ScalarBackend final : public Backend {
 public:
  /// `implementation`: the part of the name before the signature ("scalar").
  ScalarBackend(std::string_view implementation, Signature signature, std::string says,
                Mistake mistake = {});

  std::string_view name() const override { return name_; }
  std::string_view says() const override { return says_; }
  const Capabilities& capabilities() const override { return capabilities_; }
  const NumericsProfile& profile() const override { return *profile_; }
  Answer available() const override { return {}; }
  Answer supports(const Call& call) const override;
  RunResult run(const Call& call, const TensorSource& source,
                const RunOptions& options) const override;

 private:
  std::string name_;
  std::string says_;
  Mistake mistake_;
  Capabilities capabilities_;
  const NumericsProfile* profile_;
};

}  // namespace attest
