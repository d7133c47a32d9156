#pragma once

#include <mutex>
#include <string>
#include <string_view>

#include "backends/amx/defect.hpp"
#include "backends/amx/emulation/engine.hpp"
#include "backends/backend.hpp"
#include "backends/wrap_model.hpp"

namespace attest::amx {

/// Our AMX kernels behind one signature (extend or decode) on one engine, honest or with one
/// defect. Emulated engines share a process; where the CPU has tiles they run in a worker, since a
/// process that may use the CPU's tiles cannot emulate them. ATTEST_AMX leaves only one engine.
class AmxBackend final : public Backend {
 public:
  AmxBackend(Signature signature, Engine engine, std::string_view implementation = "amx",
             std::string says = "AMX tile kernel", Defect defect = Defect::none,
             WrapModel wrap = {});

  std::string_view name() const override { return name_; }
  std::string_view says() const override { return here().says; }
  const Capabilities& capabilities() const override { return here().capabilities; }
  const NumericsProfile& profile() const override { return *profile_; }
  Answer available() const override { return here().available; }
  std::string_view only_when_named() const override { return here().only_when_named; }
  Answer supports(const Call& call) const override;
  RunResult run(const Call& call, const TensorSource& source,
                const RunOptions& options) const override;

  Engine engine() const { return engine_; }
  Defect defect() const { return defect_; }

 private:
  struct Here {
    Capabilities capabilities;
    std::string says;
    Answer available;
    std::string only_when_named;
  };
  const Here& here() const;

  std::string name_;
  std::string says_;
  Engine engine_;
  Defect defect_;
  WrapModel wrap_;
  Capabilities claims_;
  const NumericsProfile* profile_;
  mutable std::once_flag looked_;
  mutable Here here_;
};

}  // namespace attest::amx
