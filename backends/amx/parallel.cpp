#include "backends/amx/parallel.hpp"

#include <thread>
#include <vector>

#include "backends/amx/emulation/engine.hpp"
#include "backends/amx/tile.hpp"
#include "contracts/resource_error.hpp"

namespace attest::amx {
namespace {

void run_worker(int worker, const std::function<void(int)>& body, KernelOutcome& outcome) {
  thread_counters() = {};
  const auto raised = catch_raised([&] {
    RowBlock::configure_tiles();
    body(worker);
    tile_release();
  });
  const Counters& counters = thread_counters();
  outcome.loads = counters.loads;
  outcome.dots = counters.dots;
  outcome.bytes_loaded = counters.bytes_loaded;
  outcome.zero_strides = counters.zero_strides;
  outcome.reads_before_write = counters.reads_before_write;
  if (raised) outcome.raised = to_string(*raised);
}

}  // namespace

KernelOutcome on_tiles(int threads, const std::function<void(int)>& body) {
  std::vector<KernelOutcome> outcomes(static_cast<std::size_t>(threads));
  std::vector<std::jthread> others;
  for (int worker = 1; worker < threads; ++worker) {
    others.push_back(start_thread(
        static_cast<std::size_t>(worker) + 1, outcomes.size(), "the AMX kernel",
        [&, worker] { run_worker(worker, body, outcomes[static_cast<std::size_t>(worker)]); }));
  }
  run_worker(0, body, outcomes[0]);
  others.clear();  // joins
  KernelOutcome total;
  for (const KernelOutcome& one : outcomes) {
    total.loads += one.loads;
    total.dots += one.dots;
    total.bytes_loaded += one.bytes_loaded;
    total.zero_strides += one.zero_strides;
    total.reads_before_write += one.reads_before_write;
    if (one.raised && !total.raised) total.raised = one.raised;
  }
  return total;
}

}  // namespace attest::amx
