#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "contracts/call.hpp"
#include "contracts/capabilities.hpp"

namespace attest::hip {

/// A call that the kernel must not be launched with, in words that name the array and the value: a
/// device would read or write outside its memory.
class Refusal : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Whether the kernels are built for the call's types and sizes.
Answer compiled_for(const UnifiedCall& call);
Answer compiled_for(const MlaDecodeCall& call);

/// Everything the kernel relies on: offsets ascend, every key some row sees has a page inside the
/// pool, shapes fit together. A call that passes may still be wrong; it then gives wrong numbers.
/// \throws Refusal
void check_call(const UnifiedCall& call);
void check_call(const MlaDecodeCall& call);

/// Requests whose rows lie past the tensors, one sentence each. The kernel leaves the rows out.
std::vector<std::string> rows_left_out(const UnifiedCall& call);
std::vector<std::string> rows_left_out(const MlaDecodeCall& call);

}  // namespace attest::hip
