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
  static void fiber_entry();
  void live();

  // host_block.cpp: who runs next.
  void suspend();
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

/// The runner whose fiber this is. \throws std::logic_error outside a kernel.
BlockRunner& current_runner();

}  // namespace attest::hip::host
