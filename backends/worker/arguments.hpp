#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "contracts/call.hpp"

namespace attest {

/// What the kernel does with a tensor.
enum class ArgumentRole {
  input,    ///< read: q, new K and V, sinks, descales, metadata arrays
  pool,     ///< K or V of the whole pool; written only where the call says so
  output,   ///< written
  scratch,  ///< the kernel's to use
};
std::string_view name(ArgumentRole role);

/// One tensor argument and where it lies in the shared memory, in bytes from its start.
struct TensorArgument {
  TensorMeta meta;
  ArgumentRole role = ArgumentRole::input;
  std::int64_t at = -1;     ///< of element 0; -1: the call has no memory yet
  std::int64_t first = -1;  ///< what may be touched, guard bytes included
  std::int64_t end = -1;
  bool operator==(const TensorArgument&) const = default;
};

/// One argument under the kernel's own parameter name.
struct Argument {
  std::string name;
  std::variant<TensorArgument, std::int64_t, double, bool, std::string, std::array<std::int64_t, 2>>
      value;
  bool operator==(const Argument&) const = default;
};

/// Every argument that the call passes, in the order of contracts/call_fields.hpp. What is absent
/// (None) is left out; so is Launch, which is the host code's own choice. An output that the kernel
/// returns follows as "out": another process has to leave it somewhere.
std::vector<Argument> arguments_of(const Call& call);

}  // namespace attest
