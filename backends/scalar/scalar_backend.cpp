#include "backends/scalar/scalar_backend.hpp"

#include <system_error>
#include <utility>

#include "backends/profiles.hpp"
#include "backends/scalar/call_shape.hpp"
#include "backends/scalar/operands.hpp"
#include "backends/scalar/signatures.hpp"
#include "contracts/resource_error.hpp"

namespace attest {
namespace {

Capabilities capabilities_of(Signature signature, const Mistake& mistake) {
  const Fault fault = mistake.fault;
  Capabilities can;
  can.signature = signature;
  can.q_dtypes = {Dtype::bf16, Dtype::f16};
  can.kv_dtypes = {Dtype::bf16, Dtype::f16};
  if (signature == Signature::unified || signature == Signature::mla_decode) {
    can.q_dtypes.insert(can.q_dtypes.end(), {Dtype::f32, Dtype::fp8_e4m3fn, Dtype::fp8_e4m3fnuz});
    can.kv_dtypes = can.q_dtypes;
  }
  if (signature == Signature::batch_prefill) {
    can.q_dtypes.insert(can.q_dtypes.end(), {Dtype::fp8_e4m3fn, Dtype::fp8_e4m3fnuz});
    can.kv_dtypes = can.q_dtypes;
  }
  if (signature == Signature::paged_ragged) {
    can.kv_dtypes.insert(can.kv_dtypes.end(), {Dtype::fp8_e4m3fn, Dtype::fp8_e4m3fnuz});
    can.window = can.sinks = can.distinct_v_head_dim = false;
  }
  if (signature == Signature::vllm_cpu) {
    can.q_dtypes.push_back(Dtype::f32);
    can.kv_dtypes = can.q_dtypes;
    can.distinct_v_head_dim = false;
  }
  if (signature == Signature::mla_decode) can.window = can.softcap = can.sinks = false;
  can.tree_mask = signature == Signature::extend || signature == Signature::legacy_extend;
  can.returns_lse = true;
  can.forms = signature != Signature::extend;
  if (can.forms) can.most_kv_splits = 1024;
  can.length_dtype_reaches_offsets = fault == Fault::byte_offset_in_seqused_dtype ||
                                     fault == Fault::element_offset_in_seqused_dtype;
  can.index_dtype_reaches_offsets = fault == Fault::slot_offset_in_table_dtype;
  can.isolate = fault == Fault::crash || fault == Fault::hang;
  return can;
}

}  // namespace

ScalarBackend::ScalarBackend(std::string_view implementation, Signature signature, std::string says,
                             Mistake mistake)
    : name_(std::string(implementation) + "." + std::string(attest::name(signature)) + "@cpu"),
      says_(std::move(says)),
      mistake_(mistake),
      capabilities_(capabilities_of(signature, mistake)),
      profile_(&built_in_profile("scalar." + std::string(attest::name(signature)), "cpu")) {}

Answer ScalarBackend::supports(const Call& call) const { return addressable(call, capabilities_); }

RunResult ScalarBackend::run(const Call& call, const TensorSource& source,
                             const RunOptions& options) const {
  if (const Answer answer = supports(call); !answer)
    throw BackendError(name_ + ": " + answer.reason);
  struct Visitor {
    const TensorSource& source;
    const RunOptions& options;
    const Mistake& mistake;
    RunResult operator()(const UnifiedCall& c) const {
      return run_unified(c, source, options, mistake);
    }
    RunResult operator()(const ExtendCall& c) const {
      return run_extend(c, source, options, mistake);
    }
    RunResult operator()(const DecodeCall& c) const {
      return run_decode(c, source, options, mistake);
    }
    RunResult operator()(const MlaDecodeCall& c) const {
      return run_mla_decode(c, source, options, mistake);
    }
    RunResult operator()(const BatchPrefillCall& c) const {
      return run_batch_prefill(c, source, options, mistake);
    }
    RunResult operator()(const PagedRaggedCall& c) const {
      return run_paged_ragged(c, source, options, mistake);
    }
    RunResult operator()(const LegacyExtendCall& c) const {
      return run_legacy_extend(c, source, options, mistake);
    }
    RunResult operator()(const VllmCpuCall& c) const {
      return run_vllm_cpu(c, source, options, mistake);
    }
  };
  try {
    return std::visit(Visitor{source, options, mistake_}, call);
  } catch (const KernelRefusal& refusal) {
    RunResult result;
    result.raised = refusal.what();
    result.engine = "cpu";
    return result;
  } catch (const ResourceError&) {
    throw;  // the harness's own, no verdict on the kernel
  } catch (const std::system_error& error) {
    throw BackendError(name_ + ": " + error.what());
  } catch (const std::invalid_argument& error) {
    throw BackendError(name_ + ": " + error.what());
  }
}

}  // namespace attest
