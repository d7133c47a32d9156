#include "backends/hip/hip_backend.hpp"

#include <algorithm>
#include <system_error>

#include "backends/hip/call_checks.hpp"
#include "backends/hip/paged_call.hpp"
#include "backends/hip/runtime/device_error.hpp"
#include "backends/hip/runtime/host_engine.hpp"
#include "backends/profiles.hpp"
#include "backends/scalar/call_shape.hpp"
#include "contracts/resource_error.hpp"

namespace attest::hip {
namespace {

Capabilities capabilities_of(Signature signature, const Engine& engine) {
  Capabilities can;
  can.signature = signature;
  can.q_dtypes = {Dtype::bf16, Dtype::f16, Dtype::fp8_e4m3fn, Dtype::fp8_e4m3fnuz};
  if (signature == Signature::unified) can.q_dtypes.push_back(Dtype::f32);
  can.kv_dtypes = can.q_dtypes;
  if (signature == Signature::mla_decode) can.window = can.softcap = can.sinks = false;
  can.returns_lse = true;
  can.forms = true;
  can.most_kv_splits = most_splits;
  can.isolate = engine.isolate();
  can.graphs = true;
  return can;
}

template <class CallType>
RunResult launch(const CallType& call, const TensorSource& source, const RunOptions& options,
                 const Engine& engine, const KernelVariant& variant) {
  check_call(call);
  RunResult result;
  const std::unique_ptr<LaunchSession> session = engine.session(options);
  PagedCall paged(call, source, options, *session);
  RouteInput input = paged.route_input();
  input.multiprocessors = engine.multiprocessors(options.device);
  Route route = route_of(input, options);
  PagedKernels kernels = engine.kernels();
  const bool wraps = variant.wrap.step != WrapStep::none;
  if (wraps) paged.wrap(variant.wrap);
  if (wraps || variant.launch != nullptr) {
    kernels = {.bf16 = wraps ? kernels.wrapped_bf16 : variant.launch, .lengths = kernels.lengths};
    const bool forced = options.kv_splits > 0 || !options.form.empty();
    if (variant.splits > 0 && !forced) route.splits = variant.splits;
  }
  paged.run(kernels, route, options.graph, variant.graph);
  paged.collect(result);
  result.form = route.form();
  for (std::string& lint : rows_left_out(call)) result.lints.push_back(std::move(lint));
  return result;
}

}  // namespace

Route route_of(const RouteInput& input, const RunOptions& options) {
  Route route = choose_route(input);
  if (options.kv_splits > 0) {
    route.splits = static_cast<int>(std::min<std::int64_t>(options.kv_splits, most_splits));
  }
  if (options.form == "2d") {
    route.splits = 1;
  } else if (options.form == "3d") {
    if (options.kv_splits <= 0) route.splits = std::max(route.splits, 8);
  } else if (!options.form.empty()) {
    throw std::invalid_argument("no form '" + options.form + "': 2d or 3d");
  }
  return route;
}

HipBackend::HipBackend(std::string_view implementation, Signature signature,
                       std::shared_ptr<const Engine> engine, KernelVariant variant)
    : name_(std::string(implementation) + "." + std::string(attest::name(signature)) + "@" +
            std::string(engine->name())),
      says_("our HIP kernel, " + std::string(engine->says())),
      engine_(std::move(engine)),
      variant_(std::move(variant)),
      capabilities_(capabilities_of(signature, *engine_)),
      profile_(&built_in_profile("hip." + std::string(attest::name(signature)), "any")) {
  if (variant_.launch == nullptr && variant_.wrap.step == WrapStep::none) return;
  says_ = variant_.says;
  capabilities_.q_dtypes = capabilities_.kv_dtypes = {Dtype::bf16};
}

Answer HipBackend::supports(const Call& call) const {
  if (Answer answer = addressable(call, capabilities_); !answer) return answer;
  if (const auto* const unified = std::get_if<UnifiedCall>(&call)) return compiled_for(*unified);
  return compiled_for(std::get<MlaDecodeCall>(call));
}

RunResult HipBackend::run(const Call& call, const TensorSource& source,
                          const RunOptions& options) const {
  for (const Answer& answer : {has_device(options.device), supports(call)}) {
    if (!answer) throw BackendError(name_ + ": " + answer.reason);
  }
  RunResult result;
  try {
    const auto* const unified = std::get_if<UnifiedCall>(&call);
    result = unified != nullptr
                 ? launch(*unified, source, options, *engine_, variant_)
                 : launch(std::get<MlaDecodeCall>(call), source, options, *engine_, variant_);
  } catch (const Refusal& refusal) {
    result.raised = refusal.what();
  } catch (const host::KernelFault& fault) {
    result.raised = fault.what();
  } catch (const DeviceError& error) {
    throw BackendError(name_ + ": " + error.what());
  } catch (const ResourceError&) {
    throw;  // the harness's own, no verdict on the kernel
  } catch (const std::system_error& error) {
    throw BackendError(name_ + ": " + error.what());
  } catch (const std::invalid_argument& error) {
    throw BackendError(name_ + ": " + error.what());
  }
  result.engine = engine_->label(options.device);
  return result;
}

}  // namespace attest::hip
