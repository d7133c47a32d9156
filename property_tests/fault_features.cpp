#include <cmath>

#include "property_tests/fault_edits.hpp"

namespace attest {
namespace {

/// Visible keys of the call's window, 0 = off, in our words; and the way back.
std::int64_t window_of(const Call& call) {
  if (const auto* c = std::get_if<UnifiedCall>(&call)) return c->window_size[0] + 1;
  if (const auto* c = std::get_if<BatchPrefillCall>(&call)) return c->window_size[0] + 1;
  if (const auto* c = std::get_if<ExtendCall>(&call)) return c->sliding_window_size;
  if (const auto* c = std::get_if<DecodeCall>(&call)) return c->sliding_window_size;
  if (const auto* c = std::get_if<LegacyExtendCall>(&call)) return c->sliding_window_size + 1;
  if (const auto* c = std::get_if<VllmCpuCall>(&call)) return c->sliding_window;
  return 0;
}

void set_window(Call& call, std::int64_t keys) {
  if (auto* c = std::get_if<UnifiedCall>(&call)) c->window_size = {keys - 1, keys > 0 ? 0 : -1};
  if (auto* c = std::get_if<BatchPrefillCall>(&call)) c->window_size = {keys - 1, -1};
  if (auto* c = std::get_if<ExtendCall>(&call)) c->sliding_window_size = keys;
  if (auto* c = std::get_if<DecodeCall>(&call)) c->sliding_window_size = keys;
  if (auto* c = std::get_if<LegacyExtendCall>(&call)) c->sliding_window_size = keys - 1;
  if (auto* c = std::get_if<VllmCpuCall>(&call)) c->sliding_window = keys > 0 ? keys : -1;
}

double& scale_of(Call& call) {
  if (auto* c = std::get_if<UnifiedCall>(&call)) return c->softmax_scale;
  if (auto* c = std::get_if<ExtendCall>(&call)) return c->sm_scale;
  if (auto* c = std::get_if<DecodeCall>(&call)) return c->sm_scale;
  if (auto* c = std::get_if<BatchPrefillCall>(&call)) {
    if (!c->softmax_scale) c->softmax_scale = 1 / std::sqrt(static_cast<double>(c->q.size(2)));
    return *c->softmax_scale;
  }
  if (auto* c = std::get_if<PagedRaggedCall>(&call)) return c->scale;
  if (auto* c = std::get_if<LegacyExtendCall>(&call)) {
    if (!c->sm_scale) c->sm_scale = 1 / std::sqrt(static_cast<double>(c->q_extend.size(2)));
    return *c->sm_scale;
  }
  if (auto* c = std::get_if<VllmCpuCall>(&call)) return c->scale;
  return std::get<MlaDecodeCall>(call).sm_scale;
}

double& softcap_of(Call& call) {
  if (auto* c = std::get_if<UnifiedCall>(&call)) return c->softcap;
  if (auto* c = std::get_if<ExtendCall>(&call)) return c->logit_cap;
  if (auto* c = std::get_if<DecodeCall>(&call)) return c->logit_cap;
  if (auto* c = std::get_if<BatchPrefillCall>(&call)) return c->logits_soft_cap;
  if (auto* c = std::get_if<PagedRaggedCall>(&call)) return c->logits_soft_cap;
  if (auto* c = std::get_if<LegacyExtendCall>(&call)) return c->logit_cap;
  if (auto* c = std::get_if<VllmCpuCall>(&call)) return c->softcap;
  return std::get<MlaDecodeCall>(call).logit_cap;
}

std::optional<TensorMeta>* sinks_of(Call& call) {
  if (auto* c = std::get_if<UnifiedCall>(&call)) return &c->sinks;
  if (auto* c = std::get_if<ExtendCall>(&call)) return &c->sinks;
  if (auto* c = std::get_if<DecodeCall>(&call)) return &c->sinks;
  if (auto* c = std::get_if<BatchPrefillCall>(&call)) return &c->sink_ptr;
  if (auto* c = std::get_if<LegacyExtendCall>(&call)) return &c->sinks;
  if (auto* c = std::get_if<VllmCpuCall>(&call)) return &c->s_aux;
  return nullptr;
}

/// Some live row loses or gains a key when the window moves by one; a window of one cannot shrink
/// (a length of 0 means "off" to these kernels).
bool window_matters(const Problem& problem, std::int64_t window) {
  for (const Request& r : problem.requests) {
    if (r.live && r.kv_len() >= window) return true;
  }
  return false;
}

bool change_window(const Problem& problem, Call& call, std::int64_t to, std::int64_t matters_from) {
  if (window_of(call) <= 0 || !window_matters(problem, matters_from)) return false;
  set_window(call, to);
  return true;
}

void expand_heads(TensorMeta& pool, std::int64_t heads) {
  pool.shape[2] = heads;
  pool.strides[2] = 0;
}

}  // namespace

bool kv_heads_expanded(const Problem& problem, const SlotMap&, Call& call) {
  auto* unified = std::get_if<UnifiedCall>(&call);
  const Model& model = problem.model;
  if (unified == nullptr || model.num_kv_heads != 1 || model.num_q_heads == 1) return false;
  expand_heads(unified->k, model.num_q_heads);
  expand_heads(unified->v, model.num_q_heads);
  if (unified->launch) unified->launch->queries_per_kv = 1;
  return true;
}

bool no_split_kv(const Problem& problem, const SlotMap&, Call& call) {
  auto* unified = std::get_if<UnifiedCall>(&call);
  if (unified == nullptr || !unified->launch || unified->launch->form == "2d") return false;
  // Short contexts lose nothing, long queries fill the machine (contracts/rules/launch.cpp).
  if (problem.max_kv_len() < 1024 || problem.max_new_tokens() > 32) return false;
  unified->launch->form = "2d";
  unified->launch->kv_splits = 1;
  return true;
}

bool window_one_key_short(const Problem& problem, const SlotMap&, Call& call) {
  const std::int64_t window = window_of(call);
  return window > 1 && change_window(problem, call, window - 1, window);
}

bool window_one_key_long(const Problem& problem, const SlotMap&, Call& call) {
  const std::int64_t window = window_of(call);
  return change_window(problem, call, window + 1, window + 1);
}

bool window_missing(const Problem& problem, const SlotMap&, Call& call) {
  const std::int64_t window = window_of(call);
  return change_window(problem, call, 0, window + 1);
}

bool scale_from_head_dim(const Problem& problem, const SlotMap&, Call& call) {
  const double from_head_dim = 1 / std::sqrt(static_cast<double>(problem.model.head_dim));
  if (std::abs(scale_of(call) - from_head_dim) < 1e-3 * from_head_dim) return false;
  scale_of(call) = from_head_dim;
  return true;
}

bool softcap_missing(const Problem&, const SlotMap&, Call& call) {
  if (softcap_of(call) <= 0) return false;
  softcap_of(call) = 0;
  return true;
}

bool sinks_missing(const Problem&, const SlotMap&, Call& call) {
  auto* const sinks = sinks_of(call);
  if (sinks == nullptr || !*sinks) return false;
  sinks->reset();
  return true;
}

bool k_descale_missing(const Problem& problem, const SlotMap&, Call& call) {
  auto* unified = std::get_if<UnifiedCall>(&call);
  if (unified == nullptr || !unified->k_descale || problem.model.k_descale == 1.0) return false;
  unified->k_descale.reset();
  return true;
}

bool tree_mask_transposed(const Problem& problem, const SlotMap&, Call& call) {
  auto* extend = std::get_if<ExtendCall>(&call);
  if (extend == nullptr || !extend->tree_mask || extend->max_len_extend < 2) return false;
  const auto n = static_cast<std::size_t>(extend->max_len_extend);
  std::vector<std::int64_t>& mask = extend->tree_mask->values;
  const std::vector<std::int64_t> before = mask;
  for (std::size_t i = 0; i < problem.requests.size(); ++i) {
    for (std::size_t t = 0; t < n; ++t) {
      for (std::size_t u = 0; u < n; ++u) mask[(i * n + t) * n + u] = before[(i * n + u) * n + t];
    }
  }
  return mask != before;
}

bool tree_mask_missing(const Problem& problem, const SlotMap&, Call& call) {
  auto* extend = std::get_if<ExtendCall>(&call);
  if (extend == nullptr || !extend->tree_mask) return false;
  bool branches = false;  // without any, the tree is a chain and its mask is the causal one
  for (const Request& r : problem.requests) {
    for (std::size_t t = 0; t < r.tree_parent.size(); ++t) {
      branches = branches || (r.live && r.tree_parent[t] != static_cast<std::int64_t>(t) - 1);
    }
  }
  extend->tree_mask.reset();
  return branches;
}

}  // namespace attest
