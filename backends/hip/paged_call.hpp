#pragma once

#include <optional>
#include <string>
#include <vector>

#include "backends/backend.hpp"
#include "backends/hip/engine.hpp"
#include "backends/hip/graph_run.hpp"
#include "backends/hip/route.hpp"
#include "memory/guarded_buffer.hpp"
#include "memory/kv_pool.hpp"

namespace attest::hip {

/// Every buffer of one call, and the kernel's arguments that point to them.
class PagedCall {
 public:
  PagedCall(const UnifiedCall& call, const TensorSource& source, const RunOptions& options,
            LaunchSession& session);
  PagedCall(const MlaDecodeCall& call, const TensorSource& source, const RunOptions& options,
            LaunchSession& session);

  /// The mistake of PagedKernels::wrapped_bf16.
  void wrap(const WrapModel& model);
  /// Launches as `route` says and waits. Args are complete then.
  /// \param graph  RunOptions::graph
  void run(const PagedKernels& kernels, const Route& route, std::string_view graph,
           GraphFault fault);
  /// Output, log-sum-exp, damage and counters.
  void collect(RunResult& result) const;

  const RouteInput& route_input() const { return route_input_; }

 private:
  PagedCall(const TensorMeta& q, const TensorMeta& out, const TensorMeta& k, const TensorMeta& v,
            const TensorSource& source, const RunOptions& options, LaunchSession& session);
  void* metadata(MetadataArray::Kind kind, const IntArray& array, bool wide);
  const std::int32_t* narrow(MetadataArray::Kind kind, const IntArray& array);
  IndexArgs indices(MetadataArray::Kind kind, const IntArray& array);
  const float* one(std::optional<double> value, bool passed);
  void set_pools(const TensorMeta& k, const TensorMeta& v);
  bool loads_vectors() const;
  std::int64_t keys_of_batch() const;

  LaunchSession& session_;
  TensorMeta out_meta_, k_meta_, v_meta_;
  int sentinel_;
  bool latent_ = false;
  GuardedBuffer q_, out_;
  KvPool k_pool_;
  std::optional<KvPool> v_pool_;
  std::optional<GuardedBuffer> sinks_;
  std::vector<float> lse_;
  std::vector<std::vector<std::byte>> arrays_;
  std::vector<MetadataArray> metadata_;
  std::vector<bool> live_;  ///< by request
  PagedArgs args_;
  RouteInput route_input_;
  std::int64_t keys_ = 0;  ///< of all requests
  std::vector<std::string> damage_;
};

}  // namespace attest::hip
