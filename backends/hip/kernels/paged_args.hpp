#pragma once

#include <cstdint>

#include "backends/wrap_model.hpp"

namespace attest::hip {

/// How elements lie in memory where a kernel learns it at run time.
enum class Format : std::int32_t { f32, f16, bf16, e4m3fn, e4m3fnuz };

/// One K or V pool. Strides count elements and are 64 bits wide, like every offset made of them.
struct PoolArgs {
  const void* data = nullptr;
  std::int64_t page_stride = 0, slot_stride = 0, head_stride = 0;
};

/// A (rows, heads, dim) tensor whose last dimension is dense.
struct RowsArgs {
  void* data = nullptr;
  std::int64_t row_stride = 0, head_stride = 0;
};

/// An index array as the framework made it, int32 or int64.
struct IndexArgs {
  const void* data = nullptr;
  std::int32_t wide = 0;  ///< 1 = int64
};

/// Everything attention over a paged cache reads. One struct serves `unified` and `mla_decode`:
/// they differ in how a request's rows, length and pages are found (block_work.hpp). Every pointer
/// is to memory of the engine that runs the kernel; nothing is checked there, so the backend checks
/// every index before the launch (call_checks.hpp).
struct PagedArgs {
  RowsArgs q, out;
  PoolArgs k, v;
  float* lse = nullptr;  ///< (rows, num_q_heads), natural logarithm; nullptr = not wanted

  // Which rows and keys a request has.
  std::int64_t total_rows = 0;  ///< rows of q and out; what a request has beyond them is left out
  std::int32_t batch = 0;
  /// (batch + 1) first row of each request; nullptr: request i has rows [i * rows_each, ...).
  const std::int32_t* first_rows = nullptr;
  std::int32_t rows_each = 1;
  IndexArgs lengths;                          ///< (batch) keys; nullptr: counted from page_starts
  IndexArgs table;                            ///< page ids
  std::int64_t table_stride = 0;              ///< entries from one request's row to the next
  const std::int32_t* page_starts = nullptr;  ///< (batch + 1) first entry; nullptr: table_stride
  const std::int32_t* last_page_lens = nullptr;  ///< (batch), with page_starts
  std::int32_t page_size = 1;
  /// What the host calls the longest length. The kernel does not look at it: a captured graph keeps
  /// it for ever. A planted fault does.
  std::int64_t max_seqlen_k = 0;

  // Shape and features.
  std::int32_t num_q_heads = 1, num_kv_heads = 1, head_dim = 1, v_head_dim = 1;
  Format q_format = Format::bf16, kv_format = Format::bf16, out_format = Format::bf16;
  std::int32_t vectors = 0;    ///< 1 = eight elements of K and V may be loaded at once
  std::int32_t q_vectors = 0;  ///< 1 = the same of q, where it is of the computing type
  float scale = 1;
  float softcap = 0;              ///< 0 = off
  std::int32_t window_left = -1;  ///< largest distance back; -1 = off
  const float* sinks = nullptr;   ///< (num_q_heads) natural logits
  const float *q_descale = nullptr, *k_descale = nullptr, *v_descale = nullptr;  ///< one each, or 1

  // The split form: `splits` parts of each row's keys, merged by the reduction. With one split the
  // kernel writes the output itself and needs neither array.
  std::int32_t splits = 1;
  float* part_out = nullptr;    ///< (rows, num_q_heads, splits, v_head_dim), not normalised
  float* part_stats = nullptr;  ///< (rows, num_q_heads, splits, 2): maximum in base 2, sum

  // PlantedFault::offset_wraps alone reads these.
  WrapModel wrap;
  const void* zeros = nullptr;  ///< a row of zeros, where a descriptor finds nothing
};

}  // namespace attest::hip
