#include "backends/hip/runtime/host_engine.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <thread>
#include <vector>

#include "backends/hip/runtime/example.hpp"
#include "backends/hip/runtime/host_orders.hpp"
#include "backends/hip/runtime/kernel.hpp"

namespace attest::hip {
namespace {

using host::host_stream;
using host::HostSettings;
using host::thread_order;
using testing::HasSubstr;

std::vector<HostSettings> every_way() {
  std::vector<HostSettings> all;
  for (const unsigned wave : {32U, 64U}) {
    for (const char* order : {"forward", "reverse", "random:7", "random:8"}) {
      for (const int threads : {1, 3}) {
        all.push_back({.wave_size = wave, .order = thread_order(order), .threads = threads});
      }
    }
  }
  return all;
}

TEST(HostEngine, RunsTheExampleInEveryOrderAtBothWaveSizes) {
  constexpr unsigned blocks = 5;
  constexpr unsigned threads = 192;
  std::vector<Bf16> in(std::size_t{blocks} * threads);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = to_bf16(static_cast<float>(i % 7));
  for (const HostSettings& settings : every_way()) {
    std::vector<float> out(blocks, -1);
    example_on_host(host_stream(settings), {in.data(), out.data(), blocks, threads});
    for (std::size_t b = 0; b < blocks; ++b) {
      float sum = 0;
      for (std::size_t i = 0; i < threads; ++i) sum += static_cast<float>((b * threads + i) % 7);
      EXPECT_EQ(out[b], sum) << "wave " << settings.wave_size;
    }
  }
}

struct Nothing {};
template <int n>
__global__ void named_kernel(Nothing) {}

TEST(HostEngine, KnowsAKernelByItsName) {
  EXPECT_THAT(std::string(kernel<named_kernel<3>>.name),
              HasSubstr("named_kernel"));  // clang leaves <3> out
  EXPECT_EQ(kernel<named_kernel<3>>.name.find('&'), std::string_view::npos);
}

struct Visit {
  unsigned* seen;
};
__global__ void visit_kernel(Visit args) {
  const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  args.seen[block * blockDim.x * blockDim.y * blockDim.z + thread] += 1 + thread;
}

TEST(HostEngine, VisitsEveryThreadOfEveryBlockOnce) {
  constexpr Extent grid{3, 2, 4};
  constexpr Extent block{5, 3, 2};
  for (const HostSettings& settings : every_way()) {
    std::vector<unsigned> seen(24 * 30);
    launch(kernel<visit_kernel>, grid, block, 0, host_stream(settings), {seen.data()});
    for (std::size_t i = 0; i < seen.size(); ++i) EXPECT_EQ(seen[i], 1 + i % 30);
  }
}

struct SharedLook {
  unsigned* numbers;  ///< (blocks)
};
__global__ void shared_look_kernel(SharedLook args) {
  const auto* floats = dynamic_shared<float>();
  const auto* halves = dynamic_shared<Fp16>();
  const auto* bf16 = dynamic_shared<Bf16>();
  for (unsigned i = threadIdx.x; i < 200; i += blockDim.x) {
    if (!std::isnan(to_float(halves[i]))) ++args.numbers[blockIdx.x];
    if (!std::isnan(to_float(bf16[i]))) ++args.numbers[blockIdx.x];
  }
  for (unsigned i = threadIdx.x; i < 100; i += blockDim.x) {
    if (!std::isnan(floats[i])) ++args.numbers[blockIdx.x];
  }
  __syncthreads();
  dynamic_shared<float>()[threadIdx.x] = 1;  // what the next block must not see
}

TEST(HostEngine, EveryBlocksSharedMemoryStartsAsNaN) {
  const HostSettings settings{.threads = 1};
  std::vector<unsigned> numbers(4);
  launch(kernel<shared_look_kernel>, {4}, {64}, 400, host_stream(settings), {numbers.data()});
  EXPECT_THAT(numbers, testing::Each(0U));
}

struct Neighbours {
  float* out;
  bool barrier;
};
__global__ void neighbours_kernel(Neighbours args) {
  auto* shared = dynamic_shared<float>();
  shared[threadIdx.x] = static_cast<float>(threadIdx.x);
  if (args.barrier) __syncthreads();
  args.out[threadIdx.x] = shared[(threadIdx.x + 1) % blockDim.x];
}

std::optional<host::OrderDependence> run_neighbours(bool barrier) {
  return host::order_dependence([&](host::ThreadOrder order) {
    std::vector<std::byte> out(96 * sizeof(float));
    const HostSettings settings{.order = order};
    launch(kernel<neighbours_kernel>, {1}, {96}, 96 * sizeof(float), host_stream(settings),
           {reinterpret_cast<float*>(out.data()), barrier});
    return out;
  });
}

TEST(HostEngine, AMissingBarrierShowsInAnotherOrder) {
  EXPECT_FALSE(run_neighbours(true));
  const auto found = run_neighbours(false);
  ASSERT_TRUE(found);
  EXPECT_THAT(found->to_string(), HasSubstr("differs between thread orders forward and reverse"));
}

__global__ void order_kernel(Visit args) { args.seen[args.seen[9]++] = blockIdx.x; }

TEST(HostEngine, ThreadOrdersReachTheBlocksToo) {
  std::set<std::vector<unsigned>> orders;
  for (const char* order : {"forward", "reverse", "random:1", "random:2"}) {
    std::vector<unsigned> seen(10);
    const HostSettings settings{.order = thread_order(order), .threads = 1};
    launch(kernel<order_kernel>, {9}, {1}, 0, host_stream(settings), {seen.data()});
    orders.insert(seen);
  }
  EXPECT_EQ(orders.size(), 4U);
}

__global__ void arrival_kernel(Visit args) { args.seen[args.seen[128]++] = threadIdx.x; }

TEST(HostEngine, ThreadOrdersDifferWithinAWaveAndBetweenWaves) {
  std::set<std::vector<unsigned>> orders;
  for (const char* order : {"forward", "reverse", "random:1", "random:2"}) {
    std::vector<unsigned> seen(129);
    const HostSettings settings{.order = thread_order(order)};
    launch(kernel<arrival_kernel>, {1}, {128}, 0, host_stream(settings), {seen.data()});
    orders.insert(seen);
    EXPECT_EQ(std::set<unsigned>(seen.begin(), seen.end() - 1).size(), 128U);
    if (std::string_view(order) == "forward") {
      EXPECT_EQ(seen[0], 0U);
    }
    if (std::string_view(order) == "reverse") {
      EXPECT_EQ(seen[0], 127U);
    }
  }
  EXPECT_EQ(orders.size(), 4U);
}

TEST(HostEngine, LaunchesFromSeveralThreadsDoNotMix) {
  std::vector<Bf16> in(64, to_bf16(1.5F));
  std::vector<std::vector<float>> outs(4, std::vector<float>(1));
  std::vector<std::thread> threads;
  for (std::vector<float>& out : outs) {
    threads.emplace_back([&] {
      const HostSettings settings{.threads = 2};
      for (int i = 0; i < 20; ++i) {
        example_on_host(host_stream(settings), {in.data(), out.data(), 1, 64});
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::vector<float>& out : outs) EXPECT_EQ(out[0], 96.0F);
}

TEST(HostEngine, ThreadOrdersAreReadAndWritten) {
  for (const char* text : {"forward", "reverse", "random:0", "random:18446744073709551615"}) {
    EXPECT_EQ(host::to_string(thread_order(text)), text);
  }
  EXPECT_EQ(thread_order(""), host::ThreadOrder{});
  for (const char* text : {"random", "random:", "random:x", "random:1x", "backward"}) {
    EXPECT_THROW(thread_order(text), std::invalid_argument) << text;
  }
}

}  // namespace
}  // namespace attest::hip
