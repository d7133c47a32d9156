#include "backends/amx/amx_backend.hpp"

#include <algorithm>
#include <system_error>
#include <thread>

#include "backends/amx/call_arguments.hpp"
#include "backends/amx/engine_lease.hpp"
#include "backends/amx/kernels.hpp"
#include "backends/profiles.hpp"
#include "backends/scalar/call_shape.hpp"
#include "contracts/resource_error.hpp"

namespace attest::amx {
namespace {

Capabilities capabilities_of(Signature signature, Defect defect) {
  Capabilities can;
  can.signature = signature;
  can.tree_mask = signature == Signature::extend;
  if (signature == Signature::decode) can.most_kv_splits = 1024;
  can.index_dtype_reaches_offsets = defect == Defect::slot_offset_in_int32;
  if (defect == Defect::f16_as_bf16) can.q_dtypes = can.kv_dtypes = {Dtype::f16};
  return can;
}

/// Defect::slot_offset_in_int32.
constexpr WrapModel slot_product_in_table_dtype = {WrapStep::page_product, WrapKind::int32, true,
                                                   true, true};

/// Threads cost more than they bring below about this many multiply-adds.
constexpr double threads_pay = 5e7;

int thread_count(const RunOptions& options, double multiply_adds) {
  if (options.threads > 0) return std::min(options.threads, 1024);
  if (multiply_adds < threads_pay) return 1;
  return static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
}

double work_of(const KernelArguments& args, std::int64_t rows) {
  double keys = 0;
  for (std::int64_t i = 0; i < args.batch; ++i) keys += static_cast<double>(args.seq_lens[i]);
  return keys * static_cast<double>(std::max<std::int64_t>(rows / args.batch, 1)) *
         static_cast<double>(args.num_q_heads * (args.shape.head_dim + args.shape.v_head_dim));
}

void note(const KernelOutcome& outcome, RunResult& result) {
  if (outcome.loads > 0) {  // the CPU does not count its tiles
    result.counters["tile_loads"] = static_cast<std::int64_t>(outcome.loads);
    result.counters["tile_dots"] = static_cast<std::int64_t>(outcome.dots);
    result.counters["tile_bytes"] = static_cast<std::int64_t>(outcome.bytes_loaded);
  }
  if (outcome.zero_strides > 0) {
    result.lints.push_back(std::to_string(outcome.zero_strides) + " tile loads with stride 0");
  }
  if (outcome.reads_before_write > 0) {
    result.lints.push_back(std::to_string(outcome.reads_before_write) +
                           " tiles read before they were written");
  }
  result.raised = outcome.raised;
}

RunResult run_extend(const ExtendCall& call, const TensorSource& source, const RunOptions& options,
                     Defect defect, const WrapModel& wrap) {
  check_extend(call, defect);
  Launch launch(source, call.q_extend, call.k_buffer, call.v_buffer, call.o_extend,
                Stored::committed_and_new, options.sentinel, defect);
  ExtendArguments args;
  launch.common(args, call.req_to_token, call.req_pool_indices, call.seq_lens, call.encoder_lens,
                call.sinks);
  args.q = {reinterpret_cast<const Bf16*>(launch.q.data()), call.q_extend.stride(0),
            call.q_extend.stride(1)};
  args.shape.wrap = wrap;
  args.shape.scale = static_cast<float>(call.sm_scale);
  args.shape.softcap = static_cast<float>(call.logit_cap);
  args.cross_attention = call.is_cross_attn;
  args.window = std::max<std::int64_t>(call.sliding_window_size, 0);
  if (!call.is_cross_attn) {
    args.k_new = launch.new_rows(*call.k_extend, false);
    args.v_new = launch.new_rows(*call.v_extend, true);
  }
  args.extend_seq_lens = call.extend_seq_lens.values.data();
  args.extend_start_loc = call.extend_start_loc.values.data();
  args.max_len = call.max_len_extend;
  std::vector<std::uint8_t> mask;
  if (call.tree_mask) {
    for (const std::int64_t entry : call.tree_mask->values) mask.push_back(entry != 0 ? 1 : 0);
    args.tree_mask = mask.data();
  }
  args.threads = thread_count(options, work_of(args, call.q_extend.size(0)));
  RunResult result;
  note(extend(args), result);
  launch.collect(result);
  result.form = "extend";
  return result;
}

RunResult run_decode(const DecodeCall& call, const TensorSource& source, const RunOptions& options,
                     Defect defect, const WrapModel& wrap) {
  check_decode(call, defect);
  Launch launch(source, call.query, call.k_buffer, call.v_buffer, call.output, Stored::committed,
                options.sentinel, defect);
  const auto store = [&] {
    if (!call.key) return;
    launch.store(*call.key, false, call.loc.values);
    if (launch.v_pool) launch.store(*call.value, true, call.loc.values);
  };
  const bool late = defect == Defect::stored_after_attention;
  if (!late) store();
  DecodeArguments args;
  launch.common(args, call.req_to_token, call.req_pool_indices, call.seq_lens, call.encoder_lens,
                call.sinks);
  args.q = {reinterpret_cast<const Bf16*>(launch.q.data()), call.query.stride(0),
            call.query.stride(1)};
  args.shape.wrap = wrap;
  args.shape.scale = static_cast<float>(call.sm_scale);
  args.shape.softcap = static_cast<float>(call.logit_cap);
  args.cross_attention = call.is_cross_attn;
  args.window = std::max<std::int64_t>(call.sliding_window_size, 0);
  args.splits = options.kv_splits > 0 ? options.kv_splits : call.attn_logits.size(2);
  args.threads = thread_count(options, work_of(args, args.batch));
  RunResult result;
  note(decode(args), result);
  if (late) store();
  launch.collect(result);
  result.form = "split " + std::to_string(args.splits);
  return result;
}

}  // namespace

AmxBackend::AmxBackend(Signature signature, Engine engine, std::string_view implementation,
                       std::string says, Defect defect, WrapModel wrap)
    : name_(std::string(implementation) + "." + std::string(attest::name(signature)) + "@" +
            std::string(amx::name(engine))),
      says_(std::move(says)),
      engine_(engine),
      defect_(defect),
      wrap_(defect == Defect::slot_offset_in_int32 ? slot_product_in_table_dtype : wrap),
      claims_(capabilities_of(signature, defect)),
      profile_(&built_in_profile("amx." + std::string(attest::name(signature)), "tiles")) {}

/// What depends on the process; asked for late, because asking for tile permission rules out
/// emulating in it, and a worker that was started to emulate must not.
const AmxBackend::Here& AmxBackend::here() const {
  std::call_once(looked_, [this] {
    here_.capabilities = claims_;
    here_.says = says_ + ", " + std::string(how(engine_));
    const Choice& usual = process_engine();
    here_.available = possible(engine_);
    if (usual.engine == engine_) {
      here_.says += " (" + usual.reason + ")";
      return;
    }
    // Where AMX is off, one engine stays to say why.
    if (usual.engine == Engine::off && engine_ == Engine::native) return;
    here_.only_when_named =
        "AMX runs as " + std::string(amx::name(usual.engine)) + " here: " + usual.reason;
    here_.capabilities.isolate = engine_ != Engine::native && usual.engine == Engine::native;
    if (here_.capabilities.isolate) here_.says += ", in a process of its own";
  });
  return here_;
}

Answer AmxBackend::supports(const Call& call) const { return addressable(call, claims_); }

RunResult AmxBackend::run(const Call& call, const TensorSource& source,
                          const RunOptions& options) const {
  if (const Answer answer = supports(call); !answer) {
    throw BackendError(name_ + ": " + answer.reason);
  }
  try {
    const EngineLease lease(engine_);
    RunResult result =
        std::holds_alternative<ExtendCall>(call)
            ? run_extend(std::get<ExtendCall>(call), source, options, defect_, wrap_)
            : run_decode(std::get<DecodeCall>(call), source, options, defect_, wrap_);
    result.engine = std::string(amx::name(engine_));
    return result;
  } catch (const Refusal& refusal) {
    RunResult result;
    result.raised = refusal.what();
    result.engine = std::string(amx::name(engine_));
    return result;
  } catch (const EngineUnavailable& error) {
    throw BackendError(name_ + ": " + error.what());
  } catch (const ResourceError&) {
    throw;  // the harness's own, no verdict on the kernel
  } catch (const std::system_error& error) {
    throw BackendError(name_ + ": " + error.what());
  } catch (const std::invalid_argument& error) {
    throw BackendError(name_ + ": " + error.what());
  }
}

}  // namespace attest::amx
