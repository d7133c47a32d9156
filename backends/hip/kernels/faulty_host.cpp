#include <array>
#include <utility>

#include "backends/hip/kernels/faulty_launches.hpp"
#include "backends/hip/kernels/launch_paged.hpp"

namespace attest::hip {
namespace {

using FaultyShape = Shape<MmaFragment, largest_head_dim, largest_head_dim, 1, 4, 64, 2>;

template <int... i>
constexpr std::array<PagedLaunch, sizeof...(i)> launches(std::integer_sequence<int, i...>) {
  return {+[](Stream stream, const PagedArgs& args, int) {
    launch_shape<Bf16, FaultyShape, static_cast<PlantedFault>(i)>(stream, args);
  }...};
}

}  // namespace

PagedLaunch faulty_launch_on_host(PlantedFault fault) {
  static constexpr auto table = launches(std::make_integer_sequence<int, planted_fault_count>{});
  return table[static_cast<std::size_t>(fault)];
}

}  // namespace attest::hip
