#include <algorithm>
#include <cmath>

#include "property_tests/fault_edits.hpp"

namespace attest {
namespace {

IntArray* lengths_of(Call& call) {
  if (auto* c = std::get_if<UnifiedCall>(&call)) return &c->seqused_k;
  if (auto* c = std::get_if<ExtendCall>(&call)) return &c->seq_lens;
  if (auto* c = std::get_if<DecodeCall>(&call)) return &c->seq_lens;
  if (auto* c = std::get_if<VllmCpuCall>(&call)) return &c->seq_lens;
  return nullptr;
}

IntArray* query_offsets_of(Call& call) {
  if (auto* c = std::get_if<UnifiedCall>(&call)) return &c->cu_seqlens_q;
  if (auto* c = std::get_if<BatchPrefillCall>(&call)) return &c->cu_seqlens_q;
  if (auto* c = std::get_if<LegacyExtendCall>(&call)) return &c->qo_indptr;
  if (auto* c = std::get_if<VllmCpuCall>(&call)) return &c->query_start_loc;
  return nullptr;
}

std::int64_t parent_of(const Request& r, std::int64_t t) {
  return r.tree_parent.empty() ? t - 1 : r.tree_parent[static_cast<std::size_t>(t)];
}

bool has_two_new_tokens(const Problem& problem) {
  return std::any_of(problem.requests.begin(), problem.requests.end(),
                     [](const Request& r) { return r.live && r.new_tokens > 1; });
}

/// Hides what is neither the row's own token nor its parent. \returns whether an entry changed.
bool show_parents_only(const Request& r, std::int64_t t, std::int64_t* row) {
  bool changed = false;
  for (std::int64_t u = 0; u < r.new_tokens; ++u) {
    if (u == t || u == parent_of(r, t) || row[u] == 0) continue;
    row[u] = 0;
    changed = true;
  }
  return changed && r.live;
}

}  // namespace

bool chunk_counts_the_whole_prompt(const Problem& problem, const SlotMap&, Call& call) {
  IntArray* const lengths = lengths_of(call);
  const bool chunks = problem.mode == Mode::extend || problem.mode == Mode::mixed;
  if (lengths == nullptr || !chunks || problem.model.cross_attention) return false;
  bool changed = false;
  for (std::size_t i = 0; i < problem.requests.size(); ++i) {
    const Request& r = problem.requests[i];
    if (!r.live || r.new_tokens < 2) continue;
    lengths->values[i] += r.new_tokens;
    changed = true;
  }
  return changed;
}

bool lengths_in_another_order(const Problem& problem, const SlotMap&, Call& call) {
  IntArray* const lengths = lengths_of(call);
  if (lengths == nullptr || problem.model.cross_attention) return false;
  const std::vector<std::int64_t> before = lengths->values;
  if (before.size() < 2) return false;
  std::rotate(lengths->values.begin(), lengths->values.begin() + 1, lengths->values.end());
  bool changed = false;
  for (std::size_t i = 0; i < problem.requests.size(); ++i) {
    changed = changed || (problem.requests[i].live && before[i] != lengths->values[i]);
  }
  return changed;
}

/// Cut off at the last row, as an array that was padded and clipped has them.
bool offsets_of_padded_rows(const Problem& problem, const SlotMap&, Call& call) {
  IntArray* const offsets = query_offsets_of(call);
  if (offsets == nullptr) return false;
  bool changed = false;
  for (std::size_t i = 0; i < offsets->values.size(); ++i) {
    const std::int64_t padded = static_cast<std::int64_t>(i) * problem.max_new_tokens();
    const std::int64_t value = std::min(padded, problem.total_new_tokens());
    const bool live = (i < problem.requests.size() && problem.requests[i].live) ||
                      (i > 0 && problem.requests[i - 1].live);
    changed = changed || (live && offsets->values[i] != value);
    offsets->values[i] = value;
  }
  return changed;
}

bool encoder_lens_of_the_longest(const Problem& problem, const SlotMap&, Call& call) {
  IntArray* lens = nullptr;
  if (auto* c = std::get_if<ExtendCall>(&call)) lens = c->encoder_lens ? &*c->encoder_lens : lens;
  if (auto* c = std::get_if<DecodeCall>(&call)) lens = c->encoder_lens ? &*c->encoder_lens : lens;
  if (lens == nullptr || lens->values.empty()) return false;
  const std::int64_t longest = *std::max_element(lens->values.begin(), lens->values.end());
  bool changed = false;
  for (std::size_t i = 0; i < lens->values.size(); ++i) {
    const Request& r = problem.requests[i];
    // An extend call reads text keys from the pool only where some are committed.
    const bool reads = problem.model.cross_attention || r.committed > 0 ||
                       std::holds_alternative<DecodeCall>(call);
    changed = changed || (r.live && reads && lens->values[i] != longest);
    lens->values[i] = longest;
  }
  return changed;
}

bool partitions_of_a_shorter_step(const Problem& problem, const SlotMap&, Call& call) {
  auto* const c = std::get_if<PagedRaggedCall>(&call);
  if (c == nullptr) return false;
  std::int64_t shortest = problem.max_kv_len(), longest = 1;
  for (const Request& r : problem.requests) {
    if (!r.live) continue;
    shortest = std::min(shortest, r.kv_len());
    longest = std::max(longest, r.kv_len());
  }
  const auto partitions = [c](std::int64_t keys) {
    return (keys + c->partition_size - 1) / c->partition_size;
  };
  c->max_num_partitions = partitions(shortest);
  return partitions(shortest) < partitions(longest);
}

/// A window that max_seqlen_k cannot reach is turned off by the kernel's host code.
bool max_seqlen_k_of_the_capture(const Problem& problem, const SlotMap&, Call& call) {
  auto* const c = std::get_if<BatchPrefillCall>(&call);
  if (c == nullptr || c->window_size[0] < 1 || c->max_seqlen_k <= 1) return false;
  const bool hides =
      std::any_of(problem.requests.begin(), problem.requests.end(),
                  [c](const Request& r) { return r.live && r.kv_len() > c->window_size[0] + 1; });
  c->max_seqlen_k = 1;
  return hides;
}

bool window_of_another_layer(const Problem& problem, const SlotMap&, Call& call) {
  const std::int64_t window = std::max<std::int64_t>(1, problem.max_kv_len() / 2);
  const bool encoder = std::any_of(problem.requests.begin(), problem.requests.end(),
                                   [](const Request& r) { return r.encoder_tokens > 0; });
  if (problem.model.window || encoder || problem.max_kv_len() < 2) return false;
  const bool hides =
      std::any_of(problem.requests.begin(), problem.requests.end(),
                  [window](const Request& r) { return r.live && r.kv_len() > window; });
  if (auto* c = std::get_if<UnifiedCall>(&call)) {
    c->window_size = {window - 1, 0};
  } else if (auto* c = std::get_if<BatchPrefillCall>(&call)) {
    c->window_size = {window - 1, -1};
  } else if (auto* c = std::get_if<LegacyExtendCall>(&call)) {
    c->sliding_window_size = window - 1;
  } else if (auto* c = std::get_if<VllmCpuCall>(&call)) {
    c->sliding_window = window;
  } else if (auto* c = std::get_if<DecodeCall>(&call)) {
    c->sliding_window_size = window;
  } else {
    return false;
  }
  return hides;
}

bool causal_not_passed(const Problem& problem, const SlotMap&, Call& call) {
  if (!has_two_new_tokens(problem)) return false;
  if (auto* c = std::get_if<BatchPrefillCall>(&call)) {
    c->causal = false;
    return true;
  }
  auto* const legacy = std::get_if<LegacyExtendCall>(&call);
  if (legacy != nullptr && !legacy->custom_mask) {
    legacy->is_causal = false;
    return true;
  }
  auto* const vllm = std::get_if<VllmCpuCall>(&call);
  if (vllm == nullptr || vllm->sliding_window > 0) return false;
  vllm->causal = false;
  return true;
}

bool tree_mask_shows_parents_only(const Problem& problem, const SlotMap&, Call& call) {
  bool changed = false;
  auto* const extend = std::get_if<ExtendCall>(&call);
  if (extend != nullptr && extend->tree_mask) {
    std::int64_t* row = extend->tree_mask->values.data();
    for (const Request& r : problem.requests) {
      for (std::int64_t t = 0; t < r.new_tokens; ++t, row += extend->max_len_extend) {
        changed = show_parents_only(r, t, row) || changed;
      }
    }
  }
  auto* const legacy = std::get_if<LegacyExtendCall>(&call);
  if (legacy != nullptr && legacy->custom_mask) {
    std::int64_t* row = legacy->custom_mask->values.data();
    for (const Request& r : problem.requests) {
      for (std::int64_t t = 0; t < r.new_tokens; ++t, row += r.kv_len()) {
        changed = show_parents_only(r, t, row + r.committed) || changed;
      }
    }
  }
  return changed;
}

bool mask_offsets_of_square_masks(const Problem& problem, const SlotMap&, Call& call) {
  auto* const c = std::get_if<LegacyExtendCall>(&call);
  if (c == nullptr || !c->custom_mask || !c->mask_indptr) return false;
  bool changed = false;
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < problem.requests.size(); ++i) {
    const Request& r = problem.requests[i];
    // A row of one token sees itself wherever its mask is read.
    changed = changed || (r.live && r.new_tokens > 1 && c->mask_indptr->values[i] != offset);
    c->mask_indptr->values[i] = offset;
    offset += r.new_tokens * r.new_tokens;
  }
  return changed;
}

bool scale_applied_twice(const Problem& problem, const SlotMap&, Call& call) {
  const double scale = problem.model.softmax_scale;
  if (std::abs(scale - 1) < 0.01) return false;
  if (auto* c = std::get_if<UnifiedCall>(&call)) c->softmax_scale = scale * scale;
  if (auto* c = std::get_if<ExtendCall>(&call)) c->sm_scale = scale * scale;
  if (auto* c = std::get_if<DecodeCall>(&call)) c->sm_scale = scale * scale;
  if (auto* c = std::get_if<MlaDecodeCall>(&call)) c->sm_scale = scale * scale;
  if (auto* c = std::get_if<BatchPrefillCall>(&call)) c->softmax_scale = scale * scale;
  if (auto* c = std::get_if<PagedRaggedCall>(&call)) c->scale = scale * scale;
  if (auto* c = std::get_if<LegacyExtendCall>(&call)) c->sm_scale = scale * scale;
  if (auto* c = std::get_if<VllmCpuCall>(&call)) c->scale = scale * scale;
  return true;
}

bool v_scale_not_passed(const Problem& problem, const SlotMap&, Call& call) {
  if (problem.model.v_descale.value_or(1) == 1) return false;
  auto* const batch = std::get_if<BatchPrefillCall>(&call);
  auto* const ragged = std::get_if<PagedRaggedCall>(&call);
  auto* const passed = batch != nullptr    ? &batch->v_descale
                       : ragged != nullptr ? &ragged->v_scale
                                           : nullptr;
  if (passed == nullptr || !*passed) return false;
  passed->reset();
  return true;
}

}  // namespace attest
