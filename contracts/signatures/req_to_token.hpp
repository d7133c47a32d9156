#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "contracts/call.hpp"
#include "contracts/problem.hpp"
#include "contracts/slot_map.hpp"

namespace attest {

/// The token table of SGLang's pool and the row of it that each request has.
struct TokenTable {
  IntArray req_to_token;      ///< (rows, context)
  IntArray req_pool_indices;  ///< (batch) int64
};

/// int64 when some slot * stride of the K or V pool reaches 2^31 elements, int32 below: the extend
/// kernel and decode's MLA path multiply in this dtype. sgl-project/sglang#24013 and extend.cpp.
Dtype table_dtype(const Problem& problem);

/// The table of the whole server: row 0 serves padded rows, requests have scattered rows, some rows
/// belong to requests that are not in this batch. Encoder tokens stand before the text. Cells past
/// a request's tokens hold 0, as a fresh table does.
TokenTable pooled_table(const Problem& problem, const SlotMap& slots);

/// The table of one draft-decode step: row i is branch i. Cells past the step's tokens are not
/// defined by the operator that builds it; here they hold undefined_slot.
TokenTable expanded_table(const Problem& problem, const SlotMap& slots);
inline constexpr std::int64_t undefined_slot = -7777;

/// (batch) int64 encoder lengths, or nothing when no layer of the model has any.
std::optional<IntArray> encoder_lens_of(const Problem& problem);

/// The K or V pool of the CPU kernels, (slots, heads, dim). MLA's V is a view into K's rows.
TensorMeta k_buffer_of(const Problem& problem);
TensorMeta v_buffer_of(const Problem& problem);

/// Why neither CPU kernel can be handed this Problem, or nothing.
std::optional<std::string> cpu_unsupported(const Problem& problem, const SlotMap& slots);

}  // namespace attest
