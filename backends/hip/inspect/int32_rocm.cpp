// Only compiled, to be looked at: the paged attention kernel with its offsets formed in 32 bits, in
// each of the ways that a kernel comes by it. attest_address_width must flag every one.

#include "backends/hip/kernels/launch_paged.hpp"

namespace attest::hip {

void narrow_offsets_on_rocm(Stream stream, const PagedArgs& args) {
  using S = AttentionShape<Bf16, 128, 128, 1>::type;
  launch_shape<Bf16, S, PlantedFault::k_elements_int32>(stream, args);
  launch_shape<Bf16, S, PlantedFault::v_elements_int32>(stream, args);
  launch_shape<Bf16, S, PlantedFault::k_bytes_int32>(stream, args);
  launch_shape<Bf16, S, PlantedFault::v_bytes_int32>(stream, args);
  launch_shape<Bf16, S, PlantedFault::k_bytes_uint32>(stream, args);
}

}  // namespace attest::hip
