#pragma once

#include <string>

#include "backends/amx/emulation/engine.hpp"
#include "backends/backend.hpp"

namespace attest::amx {

/// Our AMX kernels behind one signature (extend or decode) on one engine. A process runs AMX in one
/// way only, chosen once by ATTEST_AMX and the machine; the backends of the other engines are
/// unavailable in it and say so.
class AmxBackend final : public Backend {
 public:
  AmxBackend(Signature signature, Engine engine);

  std::string_view name() const override { return name_; }
  std::string_view says() const override { return says_; }
  const Capabilities& capabilities() const override { return capabilities_; }
  const NumericsProfile& profile() const override { return *profile_; }
  Answer available() const override;
  Answer supports(const Call& call) const override;
  RunResult run(const Call& call, const TensorSource& source,
                const RunOptions& options) const override;

 private:
  std::string name_;
  std::string says_;
  Engine engine_;
  Capabilities capabilities_;
  const NumericsProfile* profile_;
};

/// The engine of this process; asks for tile permission on first use.
const Choice& process_engine();

}  // namespace attest::amx
