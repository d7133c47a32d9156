#pragma once

#include <cstdint>

namespace attest {

/// Speed of the reference's inner part beside the machine's own matrix product, all in one run and
/// on the same number of threads.
struct CoreTimes {
  int threads = 1;
  double gemm_gflops = 0;       ///< double, 2048 x 2048 x 2048, columns split over the threads
  double core_gflops = 0;       ///< scores, softmax and values without envelopes; products counted
  double core_seconds = 0;      ///< of the stated problem
  double envelope_seconds = 0;  ///< the same with envelopes
  double core_share() const { return core_gflops / gemm_gflops; }
  double envelope_ratio() const { return envelope_seconds / core_seconds; }
};

/// 64 packed rows x 128 x 40,960 keys that lie ready in blocks; best of a few runs.
/// \param threads  0 = one per core.
CoreTimes measure_reference_core(int threads = 0);

/// One whole reference_attention with envelopes, fills included.
struct CaseTimes {
  int threads = 1;
  double seconds = 0;
  double fill_seconds = 0;    ///< of the same K and V rows alone, same threads
  std::int64_t peak_rss = 0;  ///< bytes, of the process so far
};

/// A verify step of 8 requests x 4 rows, 32:2 heads of 128, 40,960 keys each.
CaseTimes measure_reference_case(int threads = 0);

}  // namespace attest
