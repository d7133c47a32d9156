#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sanitizer/asan_interface.h>

#include <atomic>
#include <source_location>
#include <string>
#include <vector>

#include "backends/hip/runtime/host_engine.hpp"
#include "backends/hip/runtime/kernel.hpp"

#pragma weak __asan_poison_memory_region

// Kernels that break a rule of kernel.hpp, and what the host engine says about each.

namespace attest::hip {
namespace {

using host::host_stream;
using host::HostSettings;
using testing::AllOf;
using testing::HasSubstr;

struct Lines {
  unsigned* line;  ///< (2): where the kernel's calls stand
};

template <class Args>
std::string fault_of(Kernel<Args> kernel, Extent grid, unsigned threads, const Args& args,
                     const HostSettings& settings = {}) {
  try {
    launch(kernel, grid, {threads}, 64, host_stream(settings), args);
  } catch (const host::KernelFault& fault) {
    return fault.what();
  }
  return "no fault";
}

std::string line_of(unsigned line) { return "host_fault_test.cpp:" + std::to_string(line); }

__global__ void two_barriers_kernel(Lines args) {
  if (threadIdx.x < 40) {
    args.line[0] = std::source_location::current().line() + 1;
    __syncthreads();
  } else {
    args.line[1] = std::source_location::current().line() + 1;
    __syncthreads();
  }
}

TEST(HostFault, TwoBarriersInTwoBranchesAreReported) {
  std::vector<unsigned> line(2);
  const std::string what = fault_of(kernel<two_barriers_kernel>, {2}, 64, {line.data()});
  EXPECT_THAT(what,
              AllOf(HasSubstr("two_barriers_kernel, block (0,0,0): thread (0,0,0) waits at "
                              "__syncthreads, " +
                              line_of(line[0])),
                    HasSubstr("but thread (40,0,0) waits at __syncthreads, " + line_of(line[1]))));
}

struct Nothing {};
// clang-format off
__global__ void one_line_kernel(Nothing) {
  if (threadIdx.x == 0) { __syncthreads(); } else { __syncthreads(); }
}
// clang-format on

TEST(HostFault, TwoBarriersOnOneLineAreReported) {
  EXPECT_THAT(fault_of(kernel<one_line_kernel>, {1}, 64, {}),
              HasSubstr("thread (0,0,0) waits at __syncthreads"));
}

__global__ void early_exit_kernel(Lines args) {
  if (threadIdx.x >= 32) return;
  args.line[0] = std::source_location::current().line() + 1;
  __syncthreads();
  args.line[1] = 1;
}

TEST(HostFault, ThreadsThatLeaveBeforeABarrierAreReported) {
  std::vector<unsigned> line(2);
  const std::string what = fault_of(kernel<early_exit_kernel>, {1}, 64, {line.data()});
  EXPECT_THAT(what, HasSubstr("thread (0,0,0) waits at __syncthreads, " + line_of(line[0]) +
                              ", but thread (32,0,0) has returned"));
  EXPECT_EQ(line[1], 0U);
  const HostSettings lenient{.early_exit = true};
  EXPECT_EQ(fault_of(kernel<early_exit_kernel>, {1}, 64, {line.data()}, lenient), "no fault");
  EXPECT_EQ(line[1], 1U);
}

__global__ void uneven_loop_kernel(Nothing) {
  for (unsigned i = 0; i < 3 + threadIdx.x / 32; ++i) __syncthreads();
}

TEST(HostFault, UnequalBarrierCountsInALoopAreReported) {
  EXPECT_THAT(fault_of(kernel<uneven_loop_kernel>, {1}, 64, {}),
              HasSubstr("thread (32,0,0) waits at __syncthreads"));
}

__global__ void half_wave_kernel(Lines args) {
  if (threadIdx.x % 32 < 16) {
    args.line[0] = std::source_location::current().line() + 1;
    __shfl_xor(1, 8, 16);
  } else {
    args.line[1] = std::source_location::current().line() + 1;
    __syncthreads();
    return;
  }
  __syncthreads();
}

TEST(HostFault, AWaveOperationOfSomeLanesIsReportedWhereCudaNeedsAll) {
  std::vector<unsigned> line(2);
  const std::string what = fault_of(kernel<half_wave_kernel>, {1}, 64, {line.data()});
  EXPECT_THAT(what,
              HasSubstr("thread (0,0,0) waits at __shfl_xor, " + line_of(line[0]) +
                        " with 16 of the wave's 32 living lanes, but thread (31,0,0) waits at "
                        "__syncthreads, " +
                        line_of(line[1])));
  const HostSettings lenient{.partial_waves = true};
  // Then the two barriers meet, one step later.
  EXPECT_THAT(fault_of(kernel<half_wave_kernel>, {1}, 64, {line.data()}, lenient),
              AllOf(HasSubstr("thread (0,0,0) waits at __syncthreads"),
                    testing::Not(HasSubstr("living lanes"))));
}

struct Reads {
  int* out;
  int mask;
};
__global__ void reads_absent_kernel(Reads args) {
  if (threadIdx.x < 32) args.out[threadIdx.x] = __shfl_xor(7, args.mask);
  __syncthreads();
}

TEST(HostFault, AShuffleFromALaneThatWaitsElsewhereIsReported) {
  const HostSettings settings{.wave_size = 64};
  std::vector<int> out(64);
  EXPECT_THAT(fault_of(kernel<reads_absent_kernel>, {1}, 64, {out.data(), 32}, settings),
              AllOf(HasSubstr("thread (0,0,0) waits at __shfl_xor, host_fault_test.cpp:"),
                    HasSubstr("and reads lane 32, which is not there: thread (32,0,0) waits at "
                              "__syncthreads, host_fault_test.cpp:")));
  EXPECT_EQ(fault_of(kernel<reads_absent_kernel>, {1}, 64, {out.data(), 16}, settings), "no fault");
  EXPECT_EQ(out[5], 7);
}

__global__ void reads_gone_kernel(Reads args) {
  if (threadIdx.x == 3) return;
  args.out[threadIdx.x] = __shfl_xor(7, args.mask);
}

TEST(HostFault, AShuffleFromALaneThatIsGoneIsReported) {
  std::vector<int> out(64);
  EXPECT_THAT(fault_of(kernel<reads_gone_kernel>, {1}, 32, {out.data(), 1}),
              HasSubstr("thread (2,0,0) waits at __shfl_xor"));
  EXPECT_THAT(fault_of(kernel<reads_gone_kernel>, {1}, 32, {out.data(), 1}),
              HasSubstr("thread (3,0,0) has returned"));
  EXPECT_THAT(fault_of(kernel<reads_gone_kernel>, {1}, 20, {out.data(), 16}),
              HasSubstr("and reads lane 20, which is not there: the block ends before it"));
}

std::atomic<int> alive{0};
struct CountsItself {
  CountsItself() { ++alive; }
  ~CountsItself() { --alive; }
  CountsItself(const CountsItself&) = delete;
  CountsItself& operator=(const CountsItself&) = delete;
};
__global__ void throwing_kernel(Nothing) {
  const CountsItself counted;
  __syncthreads();
  if (blockIdx.x == 1 && threadIdx.x == 17) throw std::runtime_error("index 9 of 8");
  __syncthreads();
}

TEST(HostFault, AnExceptionInAKernelNamesItsThreadAndUnwindsTheOthers) {
  for (const char* order : {"forward", "reverse", "random:4"}) {
    const HostSettings settings{.order = host::thread_order(order)};
    EXPECT_THAT(fault_of(kernel<throwing_kernel>, {3}, 64, {}, settings),
                HasSubstr("throwing_kernel, block (1,0,0), thread (17,0,0): index 9 of 8"));
    EXPECT_EQ(alive, 0);
  }
}

__global__ void late_fault_kernel(Nothing) {
  for (int i = 0; i < 200; ++i) __syncthreads();
  if (blockIdx.x % 5 == 2) throw std::runtime_error("here");
}

TEST(HostFault, TheEarliestBlocksFaultIsReportedWhateverTheThreads) {
  for (const int threads : {1, 2, 4}) {
    const HostSettings settings{.threads = threads};
    EXPECT_THAT(fault_of(kernel<late_fault_kernel>, {40}, 32, {}, settings),
                HasSubstr("block (2,0,0)"));
  }
}

struct Overrun {
  int index;
};
__global__ void overrun_kernel(Overrun args) {
  if (threadIdx.x == 0) dynamic_shared<float>()[args.index] = 0;
}

TEST(HostFault, WritesOutsideSharedMemoryAreReported) {
  if (&__asan_poison_memory_region != nullptr) {
    GTEST_SKIP() << "AddressSanitizer ends the program first; hip_asan_test covers it";
  }
  EXPECT_THAT(fault_of(kernel<overrun_kernel>, {2}, 32, {16}),
              HasSubstr("wrote outside the dynamic shared memory, byte 64 of 64"));
  EXPECT_THAT(fault_of(kernel<overrun_kernel>, {2}, 32, {-1}),
              HasSubstr("wrote outside the dynamic shared memory, byte -1"));
  EXPECT_EQ(fault_of(kernel<overrun_kernel>, {2}, 32, {15}), "no fault");
}

TEST(HostFault, LaunchesThatNoDeviceTakesAreRefused) {
  EXPECT_THAT(fault_of(kernel<one_line_kernel>, {1}, 1025, {}), HasSubstr("1025 threads"));
  EXPECT_THAT(fault_of(kernel<one_line_kernel>, {0}, 32, {}), HasSubstr("extent is 0"));
  EXPECT_THAT(fault_of(kernel<one_line_kernel>, {1, 70000}, 32, {}), HasSubstr("65535"));
  EXPECT_THAT(fault_of(kernel<one_line_kernel>, {1}, 32, {}, {.wave_size = 48}),
              HasSubstr("wave size 48"));
}

}  // namespace
}  // namespace attest::hip
