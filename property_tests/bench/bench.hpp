#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "property_tests/report/console.hpp"

namespace attest {

/// One number, and what it should be.
struct Measurement {
  std::string id;    ///< "reference.core_share"
  std::string says;  ///< what was measured, sizes included
  double value = 0;
  std::string unit;  ///< "x" for a ratio within this run
  std::optional<double> target;
  bool target_is_floor = true;  ///< value >= target; otherwise value <= target
  int threads = 1;

  bool is_ratio() const { return unit == "x"; }
  bool meets_target() const;
};

/// One group of measurements; the table is bench.cpp.
struct BenchGroup {
  std::string_view id;
  std::string_view says;
  std::vector<Measurement> (*measure)();
};
std::span<const BenchGroup> bench_groups();

// The groups, one per file.
std::vector<Measurement> measure_long_case();
std::vector<Measurement> measure_reference();
std::vector<Measurement> measure_judge();
std::vector<Measurement> measure_rules();
std::vector<Measurement> measure_fills();
std::vector<Measurement> measure_large_kv();
/// Native tiles: shares of the tile peak and of the read rate. Emulated: a launch's seconds. Empty
/// where ATTEST_AMX=off.
std::vector<Measurement> measure_amx();
std::vector<Measurement> measure_hip();
std::vector<Measurement> measure_hip_routes();

std::string bench_text(const std::vector<Measurement>& measurements, const Console& console);
/// {"kind": "bench", ...} with the machine and the binary.
std::string bench_json(const std::vector<Measurement>& measurements);

/// Best of several runs of `work`, in seconds.
double best_seconds(int runs, const std::function<void()>& work);

}  // namespace attest
