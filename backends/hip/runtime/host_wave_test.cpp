#include "backends/hip/runtime/host_wave.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <vector>

#include "backends/hip/runtime/host_engine.hpp"
#include "backends/hip/runtime/kernel.hpp"

namespace attest::hip {
namespace {

using host::host_stream;
using host::HostSettings;

struct Shuffles {
  int operand;
  int width;
  int* out;  ///< (4, threads): the lane each lane got, by __shfl, _xor, _down, _up
};
__global__ void shuffles_kernel(Shuffles args) {
  const auto thread = threadIdx.x;
  const int lane = static_cast<int>(thread) % wave_size();
  const auto distance = static_cast<unsigned>(args.operand);
  args.out[thread] = __shfl(lane, args.operand, args.width);
  args.out[blockDim.x + thread] = __shfl_xor(lane, args.operand, args.width);
  args.out[2 * blockDim.x + thread] = __shfl_down(lane, distance, args.width);
  args.out[3 * blockDim.x + thread] = __shfl_up(lane, distance, args.width);
}

// The definitions of HIP's amd_warp_functions and of CUDA's guide, written from the segment's view.
int expected(int kind, int lane, int operand, int width) {
  const int in_segment = lane % width;
  const int base = lane - in_segment;
  switch (kind) {
    case 0:
      return base + operand % width;
    case 1:
      return (lane ^ operand) < base + width ? lane ^ operand : lane;
    case 2:
      return in_segment + operand < width ? lane + operand : lane;
    default:
      return in_segment >= operand ? lane - operand : lane;
  }
}

TEST(HostWave, ShufflesReachTheLanesThatHipDefines) {
  for (const unsigned wave : {32U, 64U}) {
    const HostSettings settings{.wave_size = wave, .threads = 1};
    for (int width = 1; width <= static_cast<int>(wave); width *= 2) {
      for (const int operand : {0, 1, 2, 3, 5, 8, 16, 31}) {
        std::vector<int> out(std::size_t{4} * wave);
        launch(kernel<shuffles_kernel>, {1}, {wave}, 0, host_stream(settings),
               {operand, width, out.data()});
        for (int i = 0; i < static_cast<int>(out.size()); ++i) {
          const int kind = i / static_cast<int>(wave);
          const int lane = i % static_cast<int>(wave);
          EXPECT_EQ(out[static_cast<std::size_t>(i)], expected(kind, lane, operand, width))
              << "kind " << kind << " lane " << lane << " operand " << operand << " width "
              << width;
        }
      }
    }
  }
}

struct Doubles {
  double* out;
};
__global__ void doubles_kernel(Doubles args) {
  const double mine = 1.0 + 1e-12 * static_cast<double>(threadIdx.x);
  args.out[threadIdx.x] = __shfl_xor(mine, 1);
}

TEST(HostWave, ShufflesKeepEveryBitOfADouble) {
  std::vector<double> out(64);
  launch(kernel<doubles_kernel>, {1}, {64}, 0, {}, {out.data()});
  for (std::size_t i = 0; i < out.size(); ++i) {
    EXPECT_EQ(out[i], 1.0 + 1e-12 * static_cast<double>(i ^ 1U));
  }
}

struct Ballots {
  std::uint64_t* ballot;
  int* any;
  int* all;
  unsigned limit;
};
__global__ void ballots_kernel(Ballots args) {
  args.ballot[threadIdx.x] = __ballot(threadIdx.x < args.limit ? 1 : 0);
  args.any[threadIdx.x] = __any(threadIdx.x < args.limit ? 1 : 0);
  args.all[threadIdx.x] = __all(threadIdx.x < args.limit ? 1 : 0);
}

TEST(HostWave, VotesCountTheLanesOfOneWaveOnly) {
  for (const unsigned wave : {32U, 64U}) {
    const HostSettings settings{.wave_size = wave, .threads = 1};
    for (const unsigned limit : {0U, 3U, 31U, 32U, 40U, 64U, 100U, 128U}) {
      std::vector<std::uint64_t> ballot(128);
      std::vector<int> any(128);
      std::vector<int> all(128);
      launch(kernel<ballots_kernel>, {1}, {128}, 0, host_stream(settings),
             {ballot.data(), any.data(), all.data(), limit});
      for (unsigned i = 0; i < 128; ++i) {
        const unsigned first = i / wave * wave;
        const unsigned count = std::min(wave, limit > first ? limit - first : 0);
        EXPECT_EQ(std::popcount(ballot[i]), static_cast<int>(count));
        EXPECT_EQ(std::countr_one(ballot[i]), static_cast<int>(count));
        EXPECT_EQ(any[i], count > 0 ? 1 : 0);
        EXPECT_EQ(all[i], count == wave ? 1 : 0);
      }
    }
  }
}

struct Branches {
  int* out;
};
__global__ void branches_kernel(Branches args) {
  int got = 0;
  if (threadIdx.x % 64 < 32) {
    got = __shfl_xor(static_cast<int>(threadIdx.x), 1);
  } else {
    got = 1000 + __shfl_xor(static_cast<int>(threadIdx.x), 2);
  }
  args.out[threadIdx.x] = got;
}

TEST(HostWave, LanesMeetByThePlaceTheyCallFrom) {
  const HostSettings settings{.wave_size = 64, .threads = 1};
  std::vector<int> out(64);
  launch(kernel<branches_kernel>, {1}, {64}, 0, host_stream(settings), {out.data()});
  for (int i = 0; i < 64; ++i) {
    EXPECT_EQ(out[static_cast<std::size_t>(i)], i < 32 ? i ^ 1 : 1000 + (i ^ 2));
  }
}

struct Exchange {
  float* out;
};
__global__ void wave_memory_kernel(Exchange args) {
  auto* shared = dynamic_shared<float>();
  shared[threadIdx.x] = static_cast<float>(threadIdx.x);
  sync_wave();
  args.out[threadIdx.x] = shared[threadIdx.x ^ 31U];
}

TEST(HostWave, SyncWaveOrdersSharedMemoryBetweenLanes) {
  for (const char* order : {"forward", "reverse", "random:3"}) {
    const HostSettings settings{.order = host::thread_order(order)};
    std::vector<float> out(64);
    launch(kernel<wave_memory_kernel>, {1}, {64}, 256, host_stream(settings), {out.data()});
    for (std::size_t i = 0; i < 64; ++i) EXPECT_EQ(out[i], static_cast<float>(i ^ 31U));
  }
}

TEST(HostWave, DeviceFunctionsOutsideAKernelAreRefused) {
  EXPECT_THROW(__syncthreads(), std::logic_error);
  EXPECT_THROW(__shfl_xor(1, 1), std::logic_error);
}

}  // namespace
}  // namespace attest::hip
