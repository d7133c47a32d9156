#include <fstream>
#include <stdexcept>
#include <string>

#include "backends/registry.hpp"
#include "contracts/signatures.hpp"
#include "memory/kv_pool.hpp"
#include "memory/pool_memory.hpp"
#include "property_tests/bench/bench.hpp"
#include "property_tests/large_kv.hpp"

namespace attest {
namespace {

constexpr std::int64_t twenty_gib = std::int64_t{20} << 30;

double resident_mib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) return static_cast<double>(std::stoll(line.substr(6))) / 1024;
  }
  return 0;
}

/// K and V of 20 GiB each, 400 keys in 26 pages spread over them.
Problem large_problem() {
  Problem p;
  p.mode = Mode::target_verify;
  p.model.num_q_heads = 8;
  p.model.num_kv_heads = 2;
  Request r;
  r.sequence = 1;
  r.committed = 396;
  r.new_tokens = 4;
  p.requests = {r};
  p.pool.num_pages = twenty_gib / (16 * 2 * 64 * 2);
  return p;
}

/// One output of the same tokens, on the scalar kernel.
double seconds_of(const Case& c) {
  const Backend& backend = *select_backends("scalar.unified@cpu").front();
  const TensorSource source(c.problem, c.recipe, c.seed, c.poison);
  return best_seconds(9, [&] {
    if (backend.run(*c.call, source, {}).raised) throw std::runtime_error("bench: a cell raised");
  });
}

}  // namespace

std::vector<Measurement> measure_large_kv() {
  const Problem p = large_problem();
  const TensorSource source(p, Recipe::normal, 1);
  const TensorMeta view = contiguous(Dtype::bf16, {p.pool.num_pages, 16, 2, 64});
  const auto make = [&] {
    const KvPool k(source, PoolHalf::k, view, Stored::committed_and_new);
    const KvPool v(source, PoolHalf::v, view, Stored::committed_and_new);
    if (!k.sparse() || !v.sparse()) throw std::runtime_error("bench: no sparse pool here");
  };
  const double before = resident_mib();
  const double seconds = best_seconds(9, make);
  const double resident = resident_mib() - before;
  const auto cells = large_kv_cells(select_backends("scalar.unified@cpu").front()->capabilities());
  const LargeKvCell& cell = cells.front();
  const double ratio = seconds_of(case_of(cell, 1)) / seconds_of(small_twin_of(cell, 1));
  return {{.id = "large_kv.setup",
           .says = "K and V pools of 20 GiB with 26 pages in use, " +
                   std::string(name(large_pool_wanted())) + ", made and released",
           .value = seconds * 1e3,
           .unit = "ms",
           .target = 20.0,
           .target_is_floor = false},
          {.id = "large_kv.resident",
           .says = "memory that these pools leave resident, the shared poison included",
           .value = resident,
           .unit = "MiB",
           .target = 64.0,
           .target_is_floor = false},
          {.id = "large_kv.over_small",
           .says = "a launch on sparse pools past 2 GiB over the same tokens in a small pool, "
                   "pools made anew, scalar.unified@cpu",
           .value = ratio,
           .unit = "x",
           .target = std::nullopt}};
}

}  // namespace attest
