#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "contracts/dtype.hpp"

namespace attest {

/// One kind of MLA decode kernel that AITER ships code for.
struct MlaKernel {
  std::string_view gpu;   ///< "gfx942", "gfx950"
  bool fp8_q, fp8_cache;  ///< else 16 bits
  std::int64_t heads;     ///< q heads of the rank
  bool persistent;        ///< launched with work lists
  std::int64_t longest;   ///< rows a request, shorter ones run on the next one up; 0 = any
};

/// The table, by types and heads. Source: ROCm/aiter csrc/py_itfs_cu/asm_mla.cu and
/// hsa/*/mla_asm.csv; ROCm/aiter#2720, #4752.
std::span<const MlaKernel> mla_kernels();

/// Where a kernel takes `length` rows a request, in words: "gfx942, gfx950 with work lists".
/// Empty: nowhere. `known` says whether the table has these types and heads at all.
struct MlaSupport {
  bool known = false;
  std::string where;
};
MlaSupport mla_support(Dtype q, Dtype cache, std::int64_t heads, std::int64_t length);

/// Whether AITER's table of kernels without work lists for fp8 q has an entry for this many rows
/// and heads; others raise KeyError. Source: ROCm/aiter aiter/mla.py.
bool mla_fp8_launch_is_listed(std::int64_t heads, std::int64_t length);

}  // namespace attest
