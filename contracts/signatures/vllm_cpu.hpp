#pragma once

#include <cstdint>
#include <string_view>

#include "contracts/dtype.hpp"

namespace attest {

/// The form that vLLM builds scheduler metadata for on a CPU with AMX: "amx", "vec" or "vec16".
/// Source: vllm vllm/v1/attention/backends/cpu_attn.py, _get_attn_isa.
std::string_view vllm_cpu_isa(Dtype q, std::int64_t block_size, std::int64_t head_dim);

/// Tokens that a block must hold a multiple of; 16, the least of any form, where it is unknown.
std::int64_t vllm_cpu_alignment(std::string_view isa);

/// Whether a kernel is instantiated for heads of this size.
bool vllm_cpu_takes_head_dim(std::int64_t head_dim);

}  // namespace attest
