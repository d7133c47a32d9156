#include <algorithm>
#include <cmath>

#include "backends/hip/device_speed.hpp"
#include "property_tests/bench/bench.hpp"

namespace attest {
namespace {

using hip::DeviceSpeed;
using hip::Route;
using hip::SpeedShape;

/// The shapes of docs/performance.md, "HIP kernels": 32:2 and 64:8 heads, four drafts a request.
std::vector<SpeedShape> shapes() {
  std::vector<SpeedShape> list;
  for (const std::int64_t kv_heads : {2, 8}) {
    for (const std::int64_t batch : {1, 8, 32}) {
      for (const std::int64_t keys : {1024, 8192, 40960}) {
        for (const std::int64_t page : {16, 64}) {
          SpeedShape shape;
          shape.q_heads = kv_heads == 2 ? 32 : 64;
          shape.kv_heads = kv_heads;
          shape.batch = batch;
          shape.keys = keys;
          shape.page_size = page;
          list.push_back(shape);
        }
      }
    }
  }
  return list;
}

std::string id_of(const SpeedShape& shape) {
  return std::to_string(shape.q_heads) + ":" + std::to_string(shape.kv_heads) + ".batch" +
         std::to_string(shape.batch) + ".kv" + std::to_string(shape.keys) + ".page" +
         std::to_string(shape.page_size);
}

/// Time of the chosen form, and the share of the copy bandwidth at which it reads K and V.
void measure_shape(DeviceSpeed& speed, const SpeedShape& shape, double bandwidth,
                   std::vector<Measurement>& to) {
  const Route route = speed.route(shape);
  const double seconds = speed.seconds(shape, route);
  const bool widest = shape.kv_heads == 8 && shape.batch == 32 && shape.keys == 40960;
  to.push_back({.id = "hip." + id_of(shape) + ".time",
                .says = shape.text() + ", 4 rows each, " + route.form(),
                .value = seconds * 1e6,
                .unit = "us",
                .target = std::nullopt});
  Measurement share{.id = "hip." + id_of(shape) + ".copy_share",
                    .says = "K and V bytes per second over the copy bandwidth",
                    .value = static_cast<double>(shape.kv_bytes()) / seconds / bandwidth,
                    .unit = "x",
                    .target = std::nullopt};
  if (widest) share.target = 0.6;
  to.push_back(std::move(share));
}

/// How far the chosen number of splits is from the best of the powers of two.
void measure_route(DeviceSpeed& speed, const SpeedShape& shape, std::vector<Measurement>& to) {
  const Route chosen = speed.route(shape);
  const double seconds = speed.seconds(shape, chosen);
  Route best = chosen;
  double best_seconds = seconds;
  double whole = seconds;
  std::string all;
  for (int splits = 1; splits <= 128 && std::int64_t{splits} * 64 <= shape.keys; splits *= 2) {
    Route other = chosen;
    other.splits = splits;
    const double took = speed.seconds(shape, other);
    all += " " + std::to_string(splits) + ": " + std::to_string(std::lround(took * 1e6));
    if (splits == 1) whole = took;
    if (took < best_seconds) best = other;
    best_seconds = std::min(best_seconds, took);
  }
  to.push_back({.id = "hip_routes." + id_of(shape) + ".chosen_over_best",
                .says = "time as " + chosen.form() + " over the best, " + best.form() +
                        "; us by splits:" + all,
                .value = seconds / best_seconds,
                .unit = "x",
                .target = std::nullopt});
  to.push_back({.id = "hip_routes." + id_of(shape) + ".whole_over_chosen",
                .says = "time unsplit over " + chosen.form(),
                .value = whole / seconds,
                .unit = "x",
                .target = std::nullopt});
}

/// Where a split loses: few keys.
void measure_crossover(DeviceSpeed& speed, std::vector<Measurement>& to) {
  SpeedShape shape;
  shape.keys = 128;
  Route whole;
  whole.row_groups = 4;
  Route split = whole;
  split.splits = 2;
  to.push_back({.id = "hip_routes.32:2.batch1.kv128.split_over_whole",
                .says = "time in two splits over unsplit: a form for long keys loses on few",
                .value = speed.seconds(shape, split) / speed.seconds(shape, whole),
                .unit = "x",
                .target = 1.0});
}

/// Nothing where there is no device: the measurement that says so has no number.
std::vector<Measurement> on_each_device(void (*measure)(DeviceSpeed&, std::vector<Measurement>&)) {
  std::vector<Measurement> all;
  for (const char* engine : {"cuda", "rocm"}) {
    std::string reason;
    const auto speed = hip::device_speed(engine, reason);
    if (speed == nullptr) {
      all.push_back({.id = std::string("hip.") + engine,
                     .says = "not measured: " + reason,
                     .value = 0,
                     .unit = "devices",
                     .target = std::nullopt});
      continue;
    }
    all.push_back({.id = std::string("hip.") + engine,
                   .says = speed->device(),
                   .value = 1,
                   .unit = "devices",
                   .target = std::nullopt});
    measure(*speed, all);
  }
  return all;
}

}  // namespace

std::vector<Measurement> measure_hip() {
  return on_each_device([](DeviceSpeed& speed, std::vector<Measurement>& to) {
    const double bandwidth = speed.copy_bandwidth();
    to.push_back({.id = "hip.copy",
                  .says = "a copy of 1 GiB, bytes read and written",
                  .value = bandwidth / 1e9,
                  .unit = "GB/s",
                  .target = std::nullopt});
    for (const SpeedShape& shape : shapes()) measure_shape(speed, shape, bandwidth, to);
  });
}

std::vector<Measurement> measure_hip_routes() {
  return on_each_device([](DeviceSpeed& speed, std::vector<Measurement>& to) {
    for (const SpeedShape& shape : shapes()) {
      if (shape.page_size == 64) measure_route(speed, shape, to);
    }
    measure_crossover(speed, to);
  });
}

}  // namespace attest
