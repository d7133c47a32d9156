#pragma once

#include "backends/hip/kernels/paged_launch.hpp"
#include "backends/hip/kernels/planted_fault.hpp"

namespace attest::hip {

/// The bf16 kernel with one planted fault, or with none, in blocks of 16 rows for every head size.
PagedLaunch faulty_launch_on_host(PlantedFault fault);

}  // namespace attest::hip
