#pragma once

#include <array>
#include <cstdint>
#include <exception>
#include <source_location>
#include <span>
#include <string>
#include <vector>

#include "backends/hip/runtime/host_engine.hpp"
#include "backends/hip/runtime/host_fiber.hpp"
#include "backends/hip/runtime/host_shared.hpp"
#include "backends/hip/runtime/host_thread.hpp"
#include "backends/hip/runtime/host_wave.hpp"

namespace attest::hip::host {

/// Runs the threads of one block as fibers of the calling thread; keeps stacks and shared memory
/// for the next block.
///
/// Lanes of a wave run one after another until each is blocked. Then the wave operations they wait
/// at are done, one group of lanes per place in the source, and the wave goes on; when no lane of
/// it waits at one, the next wave runs. When all waves are through, the barrier opens. So the order
/// is a function of the settings alone.
class BlockRunner {
 public:
  /// \throws KernelFault.
  void run(const Launch& launch, const HostSettings& settings, Index block);

  // What a running fiber calls.
  void wait_at_barrier(std::source_location site);
  void join_wave(const char* name, WaveWork work, void* record, std::source_location site);
  [[noreturn]] void fail_reading_inactive(int lane, int other) const;

  /// \throws std::logic_error outside a kernel.
  static BlockRunner& current();

 private:
  enum class State : std::uint8_t { running, at_wave, at_barrier, done };
  struct Lane {
    Context context;
    Index index;
    State state = State::running;
    const char* waits_at = "";
    std::source_location site;
    WaveWork work = nullptr;
    void* record = nullptr;
  };

  void begin(const Launch& launch, const HostSettings& settings, Index block);
  void end();
  [[noreturn]] static void refuse_outside();
  static void fiber_entry();
  void live();

  // host_block.cpp: who runs next.
  void suspend(State state, const char* name, std::source_location site);
  void enter(Lane& lane);
  Context& next();
  Lane* pick();
  bool advance();
  void start_waves();
  void start_pass();

  // host_rendezvous.cpp: what blocked lanes wait for.
  bool do_wave_work();
  void work_for(Lane& first);
  void check_whole(const Lane& first, std::size_t members) const;
  bool open_barrier();
  std::string where() const;
  static std::string thread(const Lane& lane);
  static std::string what_it_does(const Lane& lane);

  const Launch* launch_ = nullptr;
  const HostSettings* settings_ = nullptr;
  Index block_;
  FiberStacks stacks_;
  SharedMemory shared_;
  std::vector<Lane> lanes_;
  std::vector<std::uint16_t> waves_;      ///< in the order in which they run
  std::size_t wave_position_ = 0;         ///< in waves_
  std::span<Lane> wave_;                  ///< the one that runs
  std::array<std::uint8_t, 64> order_{};  ///< in which its lanes run
  std::size_t position_ = 0;              ///< in order_
  bool order_is_set_ = false;
  std::array<void*, 64> records_{};
  Lane* current_ = nullptr;
  Context thread_;
  std::uint64_t random_ = 0;
  std::exception_ptr fault_;
  bool unwinding_ = false;
};

/// The runner whose fiber this is; null outside a kernel.
[[gnu::tls_model("initial-exec")]] constinit inline thread_local BlockRunner* current_runner =
    nullptr;

/// Thrown through the kernel's frames of a launch that has failed.
struct Unwind {};

// These are inlined so that nothing returns between a kernel's call and the switch: see jump().

[[gnu::always_inline]] inline BlockRunner& BlockRunner::current() {
  if (current_runner == nullptr) refuse_outside();
  return *current_runner;
}

[[gnu::always_inline]] inline void BlockRunner::suspend(State state, const char* name,
                                                        std::source_location site) {
  Lane& self = *current_;
  self.state = state;
  self.waits_at = name;
  self.site = site;
  Context& to = next();
  if (&to != &self.context) switch_context(self.context, to);
  if (unwinding_) throw Unwind{};
}

[[gnu::always_inline]] inline void BlockRunner::wait_at_barrier(std::source_location site) {
  suspend(State::at_barrier, "__syncthreads", site);
}

[[gnu::always_inline]] inline void BlockRunner::join_wave(const char* name, WaveWork work,
                                                          void* record, std::source_location site) {
  current_->work = work;
  current_->record = record;
  suspend(State::at_wave, name, site);
}

}  // namespace attest::hip::host
