#pragma once

#include <memory>
#include <string>

#include "backends/backend.hpp"
#include "backends/hip/engine.hpp"
#include "backends/hip/graph_plan.hpp"
#include "backends/hip/route.hpp"
#include "backends/wrap_model.hpp"

namespace attest::hip {

/// Another kernel than the engine's own: a planted fault, bf16 only.
struct KernelVariant {
  PagedLaunch launch = nullptr;
  WrapModel
      wrap;  ///< of PagedKernels::wrapped_bf16, where a step is named; `launch` is not used then
  int splits = 0;  ///< unless the run forces another count; 0 = as for the honest kernel
  GraphFault graph = GraphFault::none;
  std::string says;
};

/// Our paged attention kernel behind one signature (unified or mla_decode) on one engine.
class HipBackend final : public Backend {
 public:
  /// `implementation`: the part of the name before the signature.
  HipBackend(std::string_view implementation, Signature signature,
             std::shared_ptr<const Engine> engine, KernelVariant variant = {});

  std::string_view name() const override { return name_; }
  std::string_view says() const override { return says_; }
  const Capabilities& capabilities() const override { return capabilities_; }
  const NumericsProfile& profile() const override { return *profile_; }
  Answer available() const override { return engine_->usable(0); }
  int device_count() const override { return engine_->device_count(); }
  Answer has_device(int device) const override { return engine_->usable(device); }
  Answer supports(const Call& call) const override;
  RunResult run(const Call& call, const TensorSource& source,
                const RunOptions& options) const override;

 private:
  std::string name_, says_;
  std::shared_ptr<const Engine> engine_;
  KernelVariant variant_;
  Capabilities capabilities_;
  const NumericsProfile* profile_;
};

/// The route that `options` force, or else the one chosen from `input`.
/// \throws std::invalid_argument for a form that does not exist.
Route route_of(const RouteInput& input, const RunOptions& options);

}  // namespace attest::hip
