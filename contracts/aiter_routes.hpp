#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "contracts/call.hpp"
#include "contracts/problem.hpp"

namespace attest {

/// What decides which kernel SGLang's AITER backend calls. Environment variables at their defaults.
struct AiterSwitches {
  bool mla = false;
  bool window_pool = false;          ///< windowed layers have a pool of their own
  bool unified_attn = false;         ///< SGLANG_USE_AITER_UNIFIED_ATTN; a window pool implies it
  bool unified_verify = true;        ///< SGLANG_AITER_UNIFIED_VERIFY
  bool unified_draft_extend = true;  ///< SGLANG_AITER_UNIFIED_DRAFT_EXTEND
  std::int64_t topk = 1;             ///< draft branches per step
};

/// Releases of SGLang between which a route changed.
enum class AiterRelease {
  v0_5_19,  ///< prompts always run on batch_prefill
  v0_5_23,  ///< from 0.5.20: prompts follow unified_attn
  later,    ///< after 0.5.23: draft extend follows its own switch alone
};
std::string_view name(AiterRelease release);

/// Where the calls of one mode go.
struct AiterRoute {
  std::optional<Signature> signature;  ///< nothing: a kernel that is not described here
  bool slots = false;                  ///< it sees one token a page, whatever the pool's page size
};

/// Source: SGLang aiter_backend.py, __init__, forward_extend and forward_decode, NHD pools; the
/// assembly kernels of gfx950 in front of unified take the same arguments.
AiterRoute aiter_route(const AiterSwitches& switches, AiterRelease release, Mode mode);

/// Every combination beside where it leads, as a Markdown table: docs/aiter_routes.md.
std::string aiter_routes_text();

}  // namespace attest
