#pragma once

#include <cstdint>
#include <vector>

#include "backends/amx/kernels.hpp"
#include "property_tests/bench/pool_memory.hpp"

namespace attest {

/// A batch in the shape of a served model (32 query heads on 8 kv heads of 128, bf16), laid out in
/// memory as the AMX kernels take it: for timing them without the harness around. Slots come in
/// runs of 16 whose order is scattered over the pool, as an allocator leaves them after a while.
class AmxWork {
 public:
  struct Row {
    std::int64_t committed = 0;
    std::int64_t fresh = 1;
  };
  explicit AmxWork(std::vector<Row> rows, Pages pages = Pages::as_allocated);

  /// Prefill or verification of all new tokens.
  amx::KernelOutcome extend(int threads);
  /// One query a request over committed + fresh keys, 8 splits as SGLang's backend asks for.
  amx::KernelOutcome decode(int threads);

  /// Multiply-adds of the visible pairs, twice: what a kernel that computes no masked pair needs.
  double extend_flops() const;
  /// Bytes of K and V that have to be read once.
  double kv_bytes() const;
  /// Reads every K and V byte once on `threads` threads, each its part as `streams` streams side by
  /// side: the rate that a kernel's reading is held against. The sum of the 64-bit words keeps it
  /// from being optimised away.
  std::uint64_t read_pools(int threads, int streams) const;
  /// The last call's outputs.
  const std::vector<amx::Bf16>& out() const { return out_; }

 private:
  void fill(amx::KernelArguments& args, int threads);

  std::vector<Row> rows_;
  std::int64_t columns_ = 0, total_rows_ = 0;
  std::vector<amx::Bf16> q_, k_new_, v_new_, out_;
  PoolMemory k_, v_;
  std::vector<std::int64_t> table_, pool_rows_, lengths_, fresh_, starts_;
};

/// The batch the throughput targets name: 8 requests, 4 to 8 drafts each, prefixes 4k to 40k.
std::vector<AmxWork::Row> long_verify_batch();
/// 8 requests of 4 drafts and 1,024 keys: what an emulated launch is timed on.
std::vector<AmxWork::Row> typical_batch();

/// tdpbf16ps on registers alone, four accumulators: what the tiles of `threads` cores can do, in
/// GFLOP/s. 0 when the tiles are emulated.
double peak_gflops(int threads);

}  // namespace attest
