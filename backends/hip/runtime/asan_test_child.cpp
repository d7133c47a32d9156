// Always built with AddressSanitizer. Runs one kernel that does what its argument names;
// asan_test.cpp reads what the sanitizer says about it.

#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <string>

#include "backends/hip/runtime/host_engine.hpp"
#include "backends/hip/runtime/kernel.hpp"

namespace attest::hip {
namespace {

struct Deed {
  int byte;       ///< of shared memory, to be written by thread 3 of block 1
  bool throws;    ///< whether that thread throws after it
  int big_frame;  ///< bytes of local array to walk, so that a frame has red zones
};

__global__ void deed_kernel(Deed args) {
  volatile char local[256] = {};
  for (int i = 0; i < args.big_frame; ++i) local[i] = static_cast<char>(i);
  __syncthreads();
  if (blockIdx.x == 1 && threadIdx.x == 3) {
    dynamic_shared<std::uint8_t>()[args.byte] = 1;  // the deed
    if (args.throws) throw std::runtime_error("thrown on purpose");
  }
  __syncthreads();
  local[0] = static_cast<char>(__shfl_xor(static_cast<int>(local[0]), 1));
}

int run(const std::string& what) {
  constexpr std::size_t shared_bytes = 61;
  Deed deed{.byte = 60, .throws = what == "throw", .big_frame = 256};
  if (what == "past") deed.byte = 61;
  if (what == "before") deed.byte = -1;
  if (what == "frame") deed.big_frame = 257;
  try {
    launch(kernel<deed_kernel>, {3}, {64}, shared_bytes, {}, deed);
  } catch (const host::KernelFault& fault) {
    std::puts(fault.what());
    return 3;
  }
  std::puts("done");
  return 0;
}

}  // namespace
}  // namespace attest::hip

int main(int count, char** arguments) { return attest::hip::run(count > 1 ? arguments[1] : ""); }
