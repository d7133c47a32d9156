#pragma once

#include <cstdint>

#include "contracts/call.hpp"

namespace attest {

/// Query rows the extend kernel takes at a time, chosen from max_len_extend; it computes rows
/// [0, block * ceil(max_len_extend / block)) of every request and no others.
/// Source: sglang sgl-kernel/csrc/cpu/extend.cpp, the BLOCK_M dispatch.
std::int64_t extend_block_rows(std::int64_t max_len_extend);

/// Rows of every request that the extend kernel computes for this max_len_extend; 0 when it is not
/// positive.
std::int64_t extend_rows_computed(std::int64_t max_len_extend);

/// Whether the decode kernel takes its MLA path: K and V are one storage, one kv head, head size
/// v + 64. That path ignores window, cross attention and encoder offsets, and refuses a logit cap.
/// Source: sglang sgl-kernel/csrc/cpu/decode.cpp, decode_attention_cpu.
bool takes_mla_path(const DecodeCall& call);

}  // namespace attest
