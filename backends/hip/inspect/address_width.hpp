#pragma once

#include <set>
#include <string>
#include <vector>

#include "backends/hip/inspect/llvm_function.hpp"

namespace attest::hip {

/// How wide the arithmetic is on the way from a page id of the block table to a K or V address.
enum class AddressWidth {
  wide,     ///< every product is formed in 64 bits
  narrow,   ///< some product is formed in 32 bits, or cut to 32 bits afterwards: wraps past 2 GiB
  unknown,  ///< no way back to the block table was found
};
std::string_view name(AddressWidth width);

/// Where a kernel's argument struct holds its pointers, as byte offsets.
struct KernelFields {
  std::set<long> pools;   ///< K and V
  std::set<long> tables;  ///< the block table
};

struct KvLoad {
  std::string value;  ///< the load's name in the IR
  int line = 0;
  AddressWidth width = AddressWidth::unknown;
};

/// Every load of a kernel through K or V, with the width of its address. Follows data flow
/// backwards through phis, selects and casts, and through shared memory: a value loaded from there
/// may be any of that width that was stored there. SSA form, so nothing is guessed from registers;
/// but what the slice does not understand ends it, and a load with no way back to the table is
/// `unknown`, which no check may pass.
std::vector<KvLoad> kv_loads(const LlvmFunction& kernel, const KernelFields& fields);

}  // namespace attest::hip
