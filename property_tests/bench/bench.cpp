#include "property_tests/bench/bench.hpp"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "property_tests/report/build_info.hpp"
#include "property_tests/report/machine.hpp"
#include "property_tests/report/numbers.hpp"
#include "property_tests/report/text_table.hpp"

namespace attest {
namespace {

// The long case first: its peak memory is the process's.
constexpr BenchGroup groups[] = {
    {"long_case", "a verify step at 40,960 keys, in seconds and memory", measure_long_case},
    {"reference", "the reference's core beside a plain matrix product", measure_reference},
    {"judge", "whole judgements of the small case list", measure_judge},
    {"rules", "the contract check of batches of 256 and 8, and reading a captured call",
     measure_rules},
    {"fills", "tensor data beside a plain copy", measure_fills},
    {"large_kv", "pools past 2 GiB beside small ones", measure_large_kv},
    {"amx", "the AMX kernels beside the machine's own tile and memory rates", measure_amx},
    {"hip", "the HIP kernel on a GPU beside a plain copy", measure_hip},
    {"hip_routes", "the HIP kernel's choice of a form beside the others", measure_hip_routes},
};

std::string target_text(const Measurement& m, const Console& console) {
  if (!m.target) return "";
  const std::string text = (m.target_is_floor ? ">= " : "<= ") + short_number(*m.target);
  return m.meets_target() ? console.good(text + " met") : console.bad(text + " missed");
}

}  // namespace

bool Measurement::meets_target() const {
  if (!target) return true;
  return target_is_floor ? value >= *target : value <= *target;
}

std::span<const BenchGroup> bench_groups() { return groups; }

double best_seconds(int runs, const std::function<void()>& work) {
  double best = 0;
  for (int i = 0; i < runs; ++i) {
    const auto start = std::chrono::steady_clock::now();
    work();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    best = i == 0 ? took.count() : std::min(best, took.count());
  }
  return best;
}

std::string bench_text(const std::vector<Measurement>& measurements, const Console& console) {
  using enum TextTable::Align;
  TextTable table({{"measurement", left},
                   {"value", right},
                   {"unit", left},
                   {"target", left},
                   {"threads", right},
                   {"what", left}});
  for (const Measurement& m : measurements) {
    table.add({m.id, short_number(m.value), m.unit, target_text(m, console),
               std::to_string(m.threads), m.says});
  }
  return table.str();
}

std::string bench_json(const std::vector<Measurement>& measurements) {
  using Json = nlohmann::ordered_json;
  const BuildInfo& build = build_info();
  Json json = {{"kind", "bench"},
               {"schema", 1},
               {"version", build.version},
               {"revision", build.revision},
               {"compiler", build.compiler},
               {"flags", build.flags},
               {"arch", build.arch},
               {"machine", Json::parse(machine_json(this_machine()))},
               {"measurements", Json::array()}};
  for (const Measurement& m : measurements) {
    Json row = {{"id", m.id},     {"says", m.says},       {"value", m.value},
                {"unit", m.unit}, {"threads", m.threads}, {"ratio", m.is_ratio()}};
    if (m.target) {
      row["target"] = *m.target;
      row["target_is"] = m.target_is_floor ? "floor" : "ceiling";
      row["met"] = m.meets_target();
    }
    json["measurements"].push_back(row);
  }
  return json.dump(2) + "\n";
}

}  // namespace attest
