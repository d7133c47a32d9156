#include "property_tests/bench/bench.hpp"
#include "reference/bench_core.hpp"

namespace attest {

std::vector<Measurement> measure_long_case() {
  const CaseTimes times = measure_reference_case();
  constexpr double mib = 1024.0 * 1024.0;
  const std::string what = "8 requests x 4 rows, 32:2 heads of 128, 40,960 keys";
  return {{.id = "long_case.seconds",
           .says = "reference with envelopes and fills, " + what,
           .value = times.seconds,
           .unit = "s",
           .target = 2.0,
           .target_is_floor = false,
           .threads = times.threads},
          {.id = "long_case.fill_share",
           .says = "part of that time which the same K and V rows take alone",
           .value = times.fill_seconds / times.seconds,
           .unit = "x",
           .target = std::nullopt,
           .threads = times.threads},
          {.id = "long_case.peak_rss",
           .says = "largest memory of the process by then",
           .value = static_cast<double>(times.peak_rss) / mib,
           .unit = "MiB",
           .target = 512.0,
           .target_is_floor = false,
           .threads = times.threads}};
}

std::vector<Measurement> measure_reference() {
  const CoreTimes times = measure_reference_core();
  return {{.id = "reference.gemm",
           .says = "double matrix product, 2048 x 2048 x 2048",
           .value = times.gemm_gflops,
           .unit = "GFLOP/s",
           .target = std::nullopt,
           .threads = times.threads},
          {.id = "reference.core_share",
           .says = "core (scores, softmax, values) of 64 rows x 128 x 40,960 keys over that rate",
           .value = times.core_share(),
           .unit = "x",
           .target = 0.6,
           .threads = times.threads},
          {.id = "reference.envelope_ratio",
           .says = "core with envelopes over core without",
           .value = times.envelope_ratio(),
           .unit = "x",
           .target = 2.5,
           .target_is_floor = false,
           .threads = times.threads}};
}

}  // namespace attest
