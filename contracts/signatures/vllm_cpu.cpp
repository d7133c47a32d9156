#include "contracts/signatures/vllm_cpu.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>

#include "contracts/signatures.hpp"
#include "contracts/signatures/paged_rows.hpp"
#include "contracts/signatures/pool_view.hpp"
#include "contracts/signatures/query_rows.hpp"
#include "contracts/signatures/refusals.hpp"

namespace attest {
namespace {

std::string text(Dtype dtype) { return std::string(name(dtype)); }

std::optional<std::string> refuses_model(const Model& m) {
  if (m.mla) return "vllm_cpu takes separate K and V caches, an MLA layer has one";
  if (is_fp8(m.q_dtype)) return "vllm_cpu takes q of 16 bits or more, the layer has fp8";
  if (m.kv_dtype != m.q_dtype) {
    // Its fp8 caches are bytes packed by the store that belongs to it.
    return "vllm_cpu takes a cache of q's type here, the layer has " + text(m.q_dtype) +
           " q over " + text(m.kv_dtype) + " keys";
  }
  if (m.out_dtype != m.q_dtype) return "vllm_cpu writes q's type";
  if (m.head_dim != m.v_head_dim) return "vllm_cpu takes one head size for K and V";
  if (!vllm_cpu_takes_head_dim(m.head_dim)) {
    return "vllm_cpu has no kernel for heads of " + std::to_string(m.head_dim);
  }
  if (m.q_descale.value_or(1) != 1 || m.k_descale.value_or(1) != 1 ||
      m.v_descale.value_or(1) != 1) {
    return "vllm_cpu has factors for fp8 caches only";
  }
  return std::nullopt;
}

bool blocks_are_dense(const Problem& p) {
  const KvStrides k = heads_first(p, p.pool.k, p.model.head_dim);
  const KvStrides v = heads_first(p, p.pool.v, p.model.v_head_dim);
  return k.slot == p.model.head_dim && v.slot == k.slot && v.head == k.head && v.page == k.page;
}

std::optional<std::string> refusal(const Problem& p, const SlotMap& slots) {
  if (auto reason = refuses_model(p.model)) return reason;
  if (auto reason = refuses_cross_attention(p, "vllm_cpu")) return reason;
  if (auto reason = refuses_draft_tree(p, "vllm_cpu")) return reason;
  if (p.pool.page_size % 16 != 0) {
    return "vllm_cpu takes blocks of a multiple of 16 tokens, the pool has pages of " +
           std::to_string(p.pool.page_size);
  }
  if (slots.page_size != p.pool.page_size) {
    return "the slots do not keep pages of " + std::to_string(p.pool.page_size) + " together";
  }
  if (!blocks_are_dense(p)) {
    return "vllm_cpu keeps a head's tokens side by side in their block, and K's blocks and heads "
           "as far apart as V's";
  }
  if (auto reason = refuses_evicted_keys(p, slots)) return reason;
  if (auto reason = refuses_wide_ids(p.pool.num_pages, "pages")) return reason;
  if (p.max_new_tokens() == 0) return "no request has a new token";
  return std::nullopt;
}

TensorMeta cache_of(const Problem& p, const KvStrides& pool, std::int64_t dim) {
  return swap_heads_and_tokens(paged_view(p, heads_first(p, pool, dim), dim));
}

}  // namespace

std::string_view vllm_cpu_isa(Dtype q, std::int64_t block_size, std::int64_t head_dim) {
  if (head_dim % 32 != 0 || block_size % 32 != 0) return "vec16";
  return q == Dtype::bf16 ? "amx" : "vec";
}

std::int64_t vllm_cpu_alignment(std::string_view isa) {
  return isa == "amx" || isa == "vec" ? 32 : 16;
}

bool vllm_cpu_takes_head_dim(std::int64_t head_dim) {
  constexpr std::array<std::int64_t, 11> sizes = {32,  64,  80,  96,  112, 128,
                                                  160, 192, 224, 256, 512};
  return std::find(sizes.begin(), sizes.end(), head_dim) != sizes.end();
}

Lowered<VllmCpuCall> lower_vllm_cpu(const Problem& problem, const SlotMap& slots) {
  if (auto reason = refusal(problem, slots)) return Unsupported{std::move(*reason)};
  const Model& m = problem.model;
  const std::int64_t rows = problem.total_new_tokens();
  VllmCpuCall call;
  call.query = contiguous(m.q_dtype, {rows, m.num_q_heads, m.head_dim});
  call.output = contiguous(m.out_dtype, {rows, m.num_q_heads, m.v_head_dim});
  call.key_cache = cache_of(problem, problem.pool.k, m.head_dim);
  call.value_cache = cache_of(problem, problem.pool.v, m.v_head_dim);
  call.query_start_loc = new_token_offsets(problem);
  call.seq_lens = total_lengths(problem, Dtype::int32);
  call.block_table = page_ids(
      problem, slots, std::max({problem.context_len, problem.max_kv_len(), std::int64_t{1}}));
  call.scale = m.softmax_scale;
  call.softcap = m.softcap;
  if (m.window) call.sliding_window = *m.window;
  if (m.sinks) {
    // Anything but bf16 is handed over in full precision.
    call.s_aux = contiguous(m.q_dtype == Dtype::bf16 ? Dtype::bf16 : Dtype::f32, {m.num_q_heads});
  }
  call.isa = vllm_cpu_isa(m.q_dtype, problem.pool.page_size, m.head_dim);
  return call;
}

Attended read(const VllmCpuCall& call, const Problem& problem, const SlotMap& slots) {
  QueryRows rows(call.query, problem);
  SlotContents contents(problem, slots);
  const auto same = [&](const TensorMeta& cache, const KvStrides& pool, std::int64_t dim) {
    return addresses_pool(swap_heads_and_tokens(cache), problem, heads_first(problem, pool, dim),
                          dim);
  };
  const Model& m = problem.model;
  PagedRows{.offsets = call.query_start_loc,
            .lengths = call.seq_lens,
            .table = call.block_table,
            .page_size = call.key_cache.size(2),
            .num_pages = std::min(call.key_cache.size(0), call.value_cache.size(0)),
            .window = std::max<std::int64_t>(0, call.sliding_window),
            .causal = call.causal,
            .usable = same(call.key_cache, problem.pool.k, m.head_dim) &&
                      same(call.value_cache, problem.pool.v, m.v_head_dim)}
      .read(contents, rows);
  return {.scale = call.scale,
          .softcap = std::max(0.0, call.softcap),
          .sinks = call.s_aux.has_value(),
          .num_q_heads = call.query.size(1),
          .num_kv_heads = distinct_heads(call.key_cache, 1),
          .rows = std::move(rows).take(problem)};
}

}  // namespace attest
