#pragma once

#include "backends/backend.hpp"
#include "backends/scalar/fault.hpp"

namespace attest {

/// The scalar kernel behind each calling convention: the call is executed as given, right or wrong.
/// Metadata that the real kernel checks, and addresses outside the mapped memory, end in
/// KernelRefusal; everything else is read as it lies. \throws KernelRefusal, std::bad_alloc,
/// std::system_error
RunResult run_unified(const UnifiedCall& call, const TensorSource& source,
                      const RunOptions& options, const Mistake& mistake);
RunResult run_extend(const ExtendCall& call, const TensorSource& source, const RunOptions& options,
                     const Mistake& mistake);
RunResult run_decode(const DecodeCall& call, const TensorSource& source, const RunOptions& options,
                     const Mistake& mistake);
RunResult run_mla_decode(const MlaDecodeCall& call, const TensorSource& source,
                         const RunOptions& options, const Mistake& mistake);

RunResult run_batch_prefill(const BatchPrefillCall& call, const TensorSource& source,
                            const RunOptions& options, const Mistake& mistake);
RunResult run_paged_ragged(const PagedRaggedCall& call, const TensorSource& source,
                           const RunOptions& options, const Mistake& mistake);
RunResult run_legacy_extend(const LegacyExtendCall& call, const TensorSource& source,
                            const RunOptions& options, const Mistake& mistake);
RunResult run_vllm_cpu(const VllmCpuCall& call, const TensorSource& source,
                       const RunOptions& options, const Mistake& mistake);

}  // namespace attest
