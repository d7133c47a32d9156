#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <vector>

#include "backends/scalar/fault.hpp"
#include "contracts/dtype.hpp"

namespace attest {

/// The kernel stops the launch with an error of its own: metadata that it checks, as the real one
/// does, or an address outside the mapped memory, where a device would fault.
class KernelRefusal : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// One key as the kernel finds it: the K and V row of kv head 0. nullptr reads as zeros.
struct KeyRow {
  const std::byte* k = nullptr;
  const std::byte* v = nullptr;
  bool fresh = false;   ///< from k_extend / v_extend, whose heads lie apart as Operands::fresh says
  bool absent = false;  ///< a fault left it out of the launch: no row sees it
};

/// One query row and the keys of its group that it sees.
struct QueryRow {
  std::int64_t row = 0;             ///< of q and out
  std::int64_t begin = 0, end = 0;  ///< keys [begin, end) of the group
  /// Draft tree: key `tree_begin + u` is visible iff tree[u] != 0; earlier keys all are.
  std::span<const std::int64_t> tree;
  std::int64_t tree_begin = 0;
};

/// Query rows that walk the same keys: one request.
struct RowGroup {
  std::vector<KeyRow> keys;
  std::vector<QueryRow> rows;
};

/// Where the rows of one kind of key lie relative to head 0.
struct KeySource {
  Dtype k_dtype = Dtype::bf16, v_dtype = Dtype::bf16;
  std::int64_t k_head_bytes = 0, v_head_bytes = 0;
};

/// Everything the kernel needs besides the groups. Strides of q and out count elements.
struct Operands {
  std::int64_t num_q_heads = 1, num_kv_heads = 1, head_dim = 1, v_head_dim = 1;
  const std::byte* q = nullptr;
  std::int64_t q_row_stride = 0, q_head_stride = 0;
  Dtype q_dtype = Dtype::bf16;
  KeySource pool, fresh;
  std::span<std::byte> out;
  std::int64_t out_row_stride = 0, out_head_stride = 0;
  Dtype out_dtype = Dtype::bf16;
  float scale = 1;    ///< of q.k, the descales of q and k included
  float softcap = 0;  ///< 0 = off
  float v_descale = 1;
  std::vector<float> sinks;  ///< per q head; empty = off
  std::span<float> lse;      ///< (rows, num_q_heads)
  std::int64_t splits = 1;
  std::int64_t threads = 1;
  Fault fault = Fault::none;
};

}  // namespace attest
