#include "backends/hip/runtime/host_engine.hpp"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <exception>
#include <memory>
#include <mutex>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "backends/hip/runtime/host_block.hpp"
#include "contracts/resource_error.hpp"

namespace attest::hip::host {
namespace {

/// Runners that no launch uses now, with their stacks.
class RunnerPool {
 public:
  std::unique_ptr<BlockRunner> take() {
    const std::lock_guard lock(mutex_);
    if (idle_.empty()) return std::make_unique<BlockRunner>();
    std::unique_ptr<BlockRunner> runner = std::move(idle_.back());
    idle_.pop_back();
    return runner;
  }
  void give_back(std::unique_ptr<BlockRunner> runner) {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(runner));
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<BlockRunner>> idle_;
};

RunnerPool& pool() {
  static RunnerPool the_pool;
  return the_pool;
}

/// Block numbers in the order of the settings, without a list: i -> (first + i * step) mod count.
struct BlockOrder {
  std::uint64_t count, first, step;

  BlockOrder(std::uint64_t blocks, ThreadOrder order) : count(blocks), first(0), step(1) {
    if (order.kind == ThreadOrder::Kind::reverse) {
      first = blocks - 1;
      step = blocks - 1;
    } else if (order.kind == ThreadOrder::Kind::random) {
      const std::uint64_t mixed = (order.seed + 1) * 0x9e3779b97f4a7c15U;
      first = (mixed >> 40) % blocks;
      step = (mixed >> 8) % blocks;
      while (std::gcd(step, blocks) != 1) step = (step + 1) % blocks;
    }
  }
  std::uint64_t operator()(std::uint64_t i) const { return (first + i % count * step) % count; }
};

/// One launch, shared by the threads that work on it.
struct Work {
  const Launch& launch;
  const HostSettings& settings;
  BlockOrder order;
  std::atomic<std::uint64_t> taken{0};
  std::atomic<bool> failed{false};
  std::mutex mutex;
  std::uint64_t fault_at = 0;
  std::exception_ptr fault;

  void run();
  void note(std::uint64_t turn);
};

/// Blocks are taken in turn and a block once begun is finished, so the fault of the earliest turn
/// is always among those noted: the launch fails with the same one however many threads there are.
void Work::note(std::uint64_t turn) {
  failed = true;
  const std::lock_guard lock(mutex);
  if (fault && fault_at < turn) return;
  fault = std::current_exception();
  fault_at = turn;
}

void Work::run() {
  std::unique_ptr<BlockRunner> runner = pool().take();
  while (!failed) {
    const std::uint64_t turn = taken++;
    if (turn >= order.count) break;
    const std::uint64_t block = order(turn);
    const Extent grid = launch.grid;
    const Index index{static_cast<unsigned>(block % grid.x),
                      static_cast<unsigned>(block / grid.x % grid.y),
                      static_cast<unsigned>(block / grid.x / grid.y)};
    try {
      runner->run(launch, settings, index);
    } catch (...) {
      note(turn);
    }
  }
  pool().give_back(std::move(runner));
}

void check(const Launch& launch, const HostSettings& settings) {
  const auto refuse = [&](const std::string& what) {
    throw KernelFault(std::string(launch.kernel) + ": " + what);
  };
  const auto empty = [](Extent e) { return e.x == 0 || e.y == 0 || e.z == 0; };
  if (empty(launch.grid) || empty(launch.block)) refuse("a grid or block extent is 0");
  const std::uint64_t threads = std::uint64_t{launch.block.x} * launch.block.y * launch.block.z;
  if (threads > 1024) refuse(std::to_string(threads) + " threads in a block, more than 1024");
  if (launch.grid.y > 65535 || launch.grid.z > 65535) refuse("grid y or z is more than 65535");
  if (settings.wave_size != 32 && settings.wave_size != 64) {
    refuse("wave size " + std::to_string(settings.wave_size) + ", not 32 or 64");
  }
}

std::uint64_t workers(const HostSettings& settings, std::uint64_t blocks) {
  const unsigned cores = std::max(1U, std::thread::hardware_concurrency());
  const std::uint64_t wanted =
      settings.threads > 0 ? static_cast<std::uint64_t>(settings.threads) : cores;
  return std::min(wanted, blocks);
}

}  // namespace

ThreadOrder thread_order(std::string_view text) {
  using Kind = ThreadOrder::Kind;
  if (text.empty() || text == "forward") return {};
  if (text == "reverse") return {Kind::reverse, 0};
  constexpr std::string_view random = "random:";
  if (text.starts_with(random)) {
    const std::string_view digits = text.substr(random.size());
    ThreadOrder order{Kind::random, 0};
    const auto [end, error] = std::from_chars(digits.begin(), digits.end(), order.seed);
    if (error == std::errc() && end == digits.end()) return order;
  }
  throw std::invalid_argument("thread order \"" + std::string(text) +
                              "\" is not forward, reverse or random:SEED");
}

void run_grid(const Launch& launch, Stream stream) {
  static const HostSettings usual;
  const auto* given = static_cast<const HostSettings*>(stream.handle);
  const HostSettings& settings = given != nullptr ? *given : usual;
  check(launch, settings);
  const std::uint64_t blocks = std::uint64_t{launch.grid.x} * launch.grid.y * launch.grid.z;
  Work work{launch, settings, BlockOrder(blocks, settings.order)};
  std::vector<std::jthread> others;
  const std::uint64_t threads = workers(settings, blocks);
  for (std::uint64_t i = 1; i < threads; ++i) {
    others.push_back(
        start_thread(i + 1, threads, "the HIP kernel on the host", [&work] { work.run(); }));
  }
  work.run();
  others.clear();  // joins
  if (work.fault) std::rethrow_exception(work.fault);
}

}  // namespace attest::hip::host
