#include "backends/hip/runtime/host_block.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <utility>

namespace attest::hip::host {
namespace {

/// splitmix64's step.
std::uint64_t draw(std::uint64_t& state) {
  state += 0x9e3779b97f4a7c15U;
  std::uint64_t z = state;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31);
}

template <class Sequence>
void arrange(Sequence first, Sequence last, ThreadOrder::Kind kind, std::uint64_t& random) {
  using Value = std::remove_reference_t<decltype(*first)>;
  std::iota(first, last, Value{0});
  if (kind == ThreadOrder::Kind::reverse) std::reverse(first, last);
  if (kind != ThreadOrder::Kind::random) return;
  for (auto left = last - first; left > 1; --left) {
    const auto other = static_cast<std::ptrdiff_t>(draw(random) % static_cast<std::uint64_t>(left));
    std::swap(first[left - 1], first[other]);
  }
}

std::size_t volume(Extent extent) { return std::size_t{extent.x} * extent.y * extent.z; }

Index index_in(Extent extent, std::size_t linear) {
  const auto x = static_cast<unsigned>(linear % extent.x);
  const auto y = static_cast<unsigned>(linear / extent.x % extent.y);
  const auto z = static_cast<unsigned>(linear / extent.x / extent.y);
  return {x, y, z};
}

}  // namespace

void BlockRunner::refuse_outside() {
  throw std::logic_error("a device function was called outside a kernel");
}

void BlockRunner::run(const Launch& launch, const HostSettings& settings, Index block) {
  begin(launch, settings, block);
  switch_context(thread_, next());
  if (fault_) {
    unwinding_ = true;
    for (Lane& lane : lanes_) {
      if (lane.state == State::done || lane.context.entry != nullptr) continue;
      enter(lane);
      switch_context(thread_, lane.context);
    }
  }
  end();
}

void BlockRunner::begin(const Launch& launch, const HostSettings& settings, Index block) {
  launch_ = &launch;
  settings_ = &settings;
  block_ = block;
  fault_ = nullptr;
  unwinding_ = false;
  const std::size_t threads = volume(launch.block);
  stacks_.reserve(threads);
  lanes_.resize(threads);
  for (std::size_t i = 0; i < threads; ++i) {
    lanes_[i].index = index_in(launch.block, i);
    lanes_[i].state = State::running;
    prepare(lanes_[i].context, stacks_[i], fiber_entry);
  }
  waves_.resize((threads + settings.wave_size - 1) / settings.wave_size);
  random_ = settings.order.seed ^
            (block.x + (std::uint64_t{block.y} << 20) + (std::uint64_t{block.z} << 40));
  current_thread = {settings.wave_size, shared_.fill(launch.shared_bytes)};
  ::blockIdx = block;
  ::blockDim = {launch.block.x, launch.block.y, launch.block.z};
  ::gridDim = {launch.grid.x, launch.grid.y, launch.grid.z};
  current_runner = this;
  order_is_set_ = false;
  start_waves();
}

void BlockRunner::end() {
  current_runner = nullptr;
  const std::string damage = shared_.damage();
  if (!fault_ && !damage.empty()) {
    throw KernelFault(where() + ": wrote outside the dynamic shared memory, " + damage);
  }
  if (fault_) std::rethrow_exception(std::exchange(fault_, nullptr));
}

void BlockRunner::fiber_entry() {
  BlockRunner& runner = *current_runner;
  runner.live();
  // live() has ended every handler, so nothing of this fiber's stack is needed any more.
  const Lane& self = *runner.current_;
  leave(self.context, runner.unwinding_ ? runner.thread_ : runner.next());
}

void BlockRunner::live() {
  Lane& self = *current_;
  self.context.entry = nullptr;
  try {
    launch_->run(launch_->self);
  } catch (const Unwind&) {  // NOLINT(bugprone-empty-catch): it has brought us here
  } catch (const std::exception& error) {
    fault_ =
        std::make_exception_ptr(KernelFault(where() + ", " + thread(self) + ": " + error.what()));
  } catch (...) {
    fault_ = std::make_exception_ptr(
        KernelFault(where() + ", " + thread(self) + ": threw what is no std::exception"));
  }
  self.state = State::done;
}

void BlockRunner::enter(Lane& lane) {
  current_ = &lane;
  ::threadIdx = lane.index;
}

Context& BlockRunner::next() {
  if (!fault_) {
    try {
      if (Lane* lane = pick()) {
        enter(*lane);
        return lane->context;
      }
    } catch (const std::exception&) {
      fault_ = std::current_exception();
    }
  }
  return thread_;
}

BlockRunner::Lane* BlockRunner::pick() {
  while (true) {
    while (position_ < settings_->wave_size) {
      const std::size_t lane = order_[position_++];
      if (lane < wave_.size() && wave_[lane].state == State::running) return &wave_[lane];
    }
    if (!advance()) return nullptr;
  }
}

bool BlockRunner::advance() {
  if (do_wave_work()) {
    start_pass();
    return true;
  }
  if (++wave_position_ == waves_.size()) {
    if (!open_barrier()) return false;
    start_waves();
  } else {
    start_pass();
  }
  return true;
}

void BlockRunner::start_waves() {
  wave_position_ = 0;
  arrange(waves_.begin(), waves_.end(), settings_->order.kind, random_);
  start_pass();
}

void BlockRunner::start_pass() {
  const std::size_t size = settings_->wave_size;
  const std::size_t first = waves_[wave_position_] * size;
  wave_ = std::span(lanes_).subspan(first, std::min(size, lanes_.size() - first));
  position_ = 0;
  const bool settled = settings_->order.kind != ThreadOrder::Kind::random && order_is_set_;
  if (!settled) {
    arrange(order_.begin(), order_.begin() + static_cast<std::ptrdiff_t>(size),
            settings_->order.kind, random_);
    order_is_set_ = true;
  }
}

}  // namespace attest::hip::host
