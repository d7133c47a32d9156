#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "backends/amx/kernels.hpp"
#include "backends/backend.hpp"
#include "contracts/call.hpp"
#include "contracts/output.hpp"
#include "memory/guarded_buffer.hpp"
#include "memory/kv_pool.hpp"
#include "memory/tensor_source.hpp"

namespace attest::amx {

/// A call that the kernel must not be launched with, in words that name the array and the value.
/// The production kernels check some of these inside a parallel region, where an error takes the
/// process down, and others not at all.
class Refusal : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Checks everything the kernels rely on; a defect leaves out the check that its kernel lacks.
/// \throws Refusal
void check_extend(const ExtendCall& call, Defect defect);
void check_decode(const DecodeCall& call, Defect defect);

/// Host memory of one launch: inputs, pools, output, and the integer arrays in the widths the
/// kernel takes them.
struct Launch {
  Launch(const TensorSource& source, const TensorMeta& q, const TensorMeta& k_buffer,
         const TensorMeta& v_buffer, const TensorMeta& out, Stored stored, int sentinel,
         Defect defect);

  /// Fills what both kernels share.
  void common(KernelArguments& args, const IntArray& req_to_token, const IntArray& pool_indices,
              const IntArray& seq_lens, const std::optional<IntArray>& encoder_lens,
              const std::optional<TensorMeta>& sinks);
  Rows new_rows(const TensorMeta& meta, bool half_is_v);
  /// key and value of the new tokens go to their slots.
  void store(const TensorMeta& rows, bool half_is_v, const std::vector<std::int64_t>& slots);
  /// Output, damage, and what the pools noticed.
  void collect(RunResult& result) const;

  const TensorSource& source;
  TensorMeta k_meta, v_meta, out_meta;
  int sentinel;
  Defect defect;
  GuardedBuffer q, out;
  KvPool k_pool;
  std::optional<KvPool> v_pool;  ///< absent where V lies in K's rows (MLA)
  std::vector<GuardedBuffer> fresh;
  std::vector<std::int64_t> written_slots;
  std::vector<std::int32_t> narrow_table;
  std::vector<std::int64_t> wide_table;
  std::vector<std::int64_t> pool_rows, lengths, encoder;
  std::vector<float> sink_values;
};

}  // namespace attest::amx
