#pragma once

#include <string>
#include <vector>

#include "backends/hip/hip_backend.hpp"
#include "backends/scalar/naive_attention.hpp"
#include "backends/scalar/scalar_cases.hpp"

namespace attest::hip {

/// Test only: the scalar kernel's cases that the HIP kernel takes, and more of its shapes: head
/// sizes 64 to 256, pages of 1 to 128 tokens, groups of 1 to 16 heads.
std::vector<ScalarCase> hip_cases();

/// The case of that name and signature. \throws std::logic_error
ScalarCase hip_case(Signature signature, std::string_view name);

/// The honest backend on the host engine with waves of `wave` lanes.
const Backend& host_backend(Signature signature, int wave = 32);

/// Where `got` leaves what rounding P and the output allows around `expected`, or nothing.
std::string difference(const RunResult& got, const NaiveOutput& expected, const Model& model);

/// Whether two runs left the same bits, NaN and untouched rows included.
bool same_bits(const RunResult& a, const RunResult& b);

}  // namespace attest::hip
