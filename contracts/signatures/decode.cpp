#include <algorithm>
#include <utility>

#include "contracts/signatures.hpp"
#include "contracts/signatures/cpu_kernels.hpp"
#include "contracts/signatures/req_to_token.hpp"

namespace attest {
namespace {

constexpr std::int64_t kv_splits = 8;  ///< intel_amx_backend.py, attn_logits

std::optional<std::string> unsupported(const Problem& p, const SlotMap& slots) {
  const bool served =
      p.mode == Mode::decode || p.mode == Mode::idle || p.mode == Mode::draft_decode;
  if (!served) return "decode does not serve " + std::string(name(p.mode));
  bool encoder = false;
  for (std::size_t i = 0; i < p.requests.size(); ++i) {
    encoder |= p.requests[i].encoder_tokens > 0;
    if (p.requests[i].new_tokens == 1) continue;
    return "decode takes one new token a request, request " + std::to_string(i) + " has " +
           std::to_string(p.requests[i].new_tokens);
  }
  if (p.model.window && encoder) {
    return "decode's window replaces the encoder offset, so it takes no window with an encoder";
  }
  return cpu_unsupported(p, slots);
}

std::optional<std::string> mla_unsupported(const Problem& p, const DecodeCall& call) {
  if (!takes_mla_path(call)) return std::nullopt;
  const std::string path = "decode's MLA path takes no ";
  if (p.model.softcap > 0) return path + "logit cap";
  if (p.model.window) return path + "window";
  if (p.model.cross_attention || call.encoder_lens) return path + "encoder";
  if (p.model.head_dim % 32 != 0 || p.model.v_head_dim % 32 != 0) {
    return path + "head size that is not a multiple of 32";
  }
  return std::nullopt;
}

/// Where the new tokens go, which is where the last entry of each table row points.
IntArray new_slots(const Problem& p, const SlotMap& slots) {
  std::vector<std::int64_t> loc;
  loc.reserve(p.requests.size());
  for (std::size_t i = 0; i < p.requests.size(); ++i) {
    const Request& r = p.requests[i];
    loc.push_back(r.live ? std::max<std::int64_t>(0, slots.slot(i, r.committed)) : 0);
  }
  return int_array(Dtype::int64, std::move(loc));
}

IntArray lens_with_this_token(const Problem& p) {
  std::vector<std::int64_t> lens;
  lens.reserve(p.requests.size());
  for (const Request& r : p.requests) lens.push_back(r.kv_len());
  return int_array(Dtype::int64, std::move(lens));
}

}  // namespace

Lowered<DecodeCall> lower_decode(const Problem& problem, const SlotMap& slots) {
  if (auto reason = unsupported(problem, slots)) return Unsupported{*reason};
  const Model& m = problem.model;
  const auto batch = static_cast<std::int64_t>(problem.requests.size());
  TokenTable table = problem.mode == Mode::draft_decode ? expanded_table(problem, slots)
                                                        : pooled_table(problem, slots);
  DecodeCall call;
  call.query = contiguous(m.q_dtype, {batch, m.num_q_heads, m.head_dim});
  call.k_buffer = k_buffer_of(problem);
  call.v_buffer = v_buffer_of(problem);
  call.output = contiguous(m.out_dtype, {batch, m.num_q_heads, m.v_head_dim});
  if (!m.cross_attention) {
    call.key = contiguous(m.kv_dtype, {batch, m.num_kv_heads, m.head_dim});
    call.value = contiguous(m.kv_dtype, {batch, m.num_kv_heads, m.v_head_dim});
  }
  call.loc = new_slots(problem, slots);
  call.attn_logits = contiguous(Dtype::f32, {batch, m.num_q_heads, kv_splits, m.v_head_dim + 1});
  call.req_to_token = std::move(table.req_to_token);
  call.req_pool_indices = std::move(table.req_pool_indices);
  call.seq_lens = lens_with_this_token(problem);
  call.sm_scale = m.softmax_scale;
  call.logit_cap = m.softcap;
  call.is_cross_attn = m.cross_attention;
  call.sliding_window_size = m.window.value_or(0);
  call.encoder_lens = encoder_lens_of(problem);
  if (m.sinks) call.sinks = contiguous(m.q_dtype, {m.num_q_heads});
  if (auto reason = mla_unsupported(problem, call)) return Unsupported{*reason};
  return call;
}

}  // namespace attest
