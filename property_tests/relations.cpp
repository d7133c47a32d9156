#include "property_tests/relation_twins.hpp"

#include <algorithm>

#include "backends/registry.hpp"

namespace attest {
namespace {

/// Both sides are one run each.
MaybeTwin pair_of(Case left, Case right) {
  return Twin{.left = {{std::move(left), {}}}, .right = {{std::move(right), {}}}};
}

bool branches(const Problem& p) { return p.topk > 1 && p.mode == Mode::draft_decode; }

// --- Where keys lie ---

MaybeTwin page_renaming(const Case& c, const Backend&) {
  Case renamed = c;
  renamed.problem.pool.slots.clear();
  renamed.problem.pool.seed += 17;
  renamed.problem.pool.placement = Placement::permuted;
  return pair_of(c, renamed);
}

MaybeTwin pool_growth(const Case& c, const Backend&) {
  Case grown = c;
  grown.problem.pool.slots.clear();
  grown.problem.pool.num_pages += 100;
  grown.problem.pool.placement = Placement::high;
  return pair_of(c, grown);
}

MaybeTwin wider_table(const Case& c, const Backend&) {
  Case wide = c;
  wide.problem.context_len = c.problem.max_kv_len() + 500;
  return pair_of(c, wide);
}

MaybeTwin poison(const Case& c, const Backend&) {
  Case loud = c;
  loud.poison.poison = c.poison.poison == Poison::nan ? Poison::loud : Poison::nan;
  return pair_of(c, loud);
}

MaybeTwin expanded_kv_heads(const Case& c, const Backend& backend) {
  if (backend.capabilities().signature != Signature::unified) return std::nullopt;
  Case shared = plain(c);
  Model& m = shared.problem.model;
  if (m.num_q_heads == m.num_kv_heads) return std::nullopt;
  m.num_q_heads /= m.num_kv_heads;
  m.num_kv_heads = 1;
  shared.problem.pool.k = shared.problem.pool.v = {};
  Case expanded = shared;
  expanded.fault = "kv_heads_expanded";
  return pair_of(shared, expanded);
}

/// The arrays that the call's kernel takes in either width.
std::vector<IntArray*> arrays_of_either_width(Call& call) {
  if (auto* const u = std::get_if<UnifiedCall>(&call)) return {&u->seqused_k};
  if (auto* const d = std::get_if<DecodeCall>(&call)) return {&d->req_to_token};
  if (auto* const e = std::get_if<ExtendCall>(&call)) {
    return {&e->req_to_token, &e->extend_seq_lens, &e->extend_start_loc};
  }
  if (auto* const l = std::get_if<LegacyExtendCall>(&call)) {
    return {&l->qo_indptr, &l->kv_indptr, &l->kv_indices};
  }
  return {};
}

/// int64 arrays against the same in int32, where no offset needs more.
MaybeTwin index_dtype(const Case& c, const Backend&) {
  Case wide = plain(c);
  Pool& pool = wide.problem.pool;
  pool.num_pages = std::min(pool.num_pages, pool.num_pages % 1'000'000);
  if (problem_error(wide.problem) || !lowers(wide)) return std::nullopt;
  Call call = std::get<Call>(call_of(wide, make_slot_map(wide.problem)));
  const std::vector<IntArray*> arrays = arrays_of_either_width(call);
  if (arrays.empty()) return std::nullopt;
  Case narrow = wide;
  for (IntArray* array : arrays) array->meta.dtype = Dtype::int32;
  narrow.call = call;
  for (IntArray* array : arrays) array->meta.dtype = Dtype::int64;
  wide.call = std::move(call);
  return pair_of(wide, narrow);
}

// --- What stands beside a row ---

MaybeTwin batch_permutation(const Case& c, const Backend&) {
  if (branches(c.problem) || c.problem.requests.size() < 2) return std::nullopt;
  Case forward = c;
  forward.recipe = Recipe::normal;
  Case reversed = forward;
  std::reverse(reversed.problem.requests.begin(), reversed.problem.requests.end());
  std::reverse(reversed.problem.pool.slots.begin(), reversed.problem.pool.slots.end());
  return pair_of(forward, reversed);
}

MaybeTwin request_alone(const Case& c, const Backend&) {
  if (branches(c.problem)) return std::nullopt;
  Twin twin{.left = {{plain(c), {}}}, .right = {}};
  for (const Request& request : c.problem.requests) {
    Case one = plain(c);
    one.problem.requests = {request};
    if (request.live) twin.right.push_back({one, {}});
  }
  if (twin.right.empty()) return std::nullopt;
  return twin;
}

MaybeTwin padding_rows(const Case& c, const Backend&) {
  std::optional<Case> padded = with_padded_request(c);
  if (!padded) return std::nullopt;
  return pair_of(plain(c), std::move(*padded));
}

/// The first kv head with its q heads alone.
MaybeTwin head_group_alone(const Case& c, const Backend&) {
  const Model& m = c.problem.model;
  if (m.num_kv_heads < 2) return std::nullopt;
  Case all = plain(c);
  all.problem.pool.k = all.problem.pool.v = {};
  Case first = all;
  first.problem.model.num_q_heads = m.num_q_heads / m.num_kv_heads;
  first.problem.model.num_kv_heads = 1;
  return Twin{
      .left = {{all, {}}}, .right = {{first, {}}}, .heads = first.problem.model.num_q_heads};
}

// --- How the work is divided ---

MaybeTwin run_twice(const Case& c, const Backend&) { return pair_of(c, c); }

MaybeTwin thread_count(const Case& c, const Backend&) {
  return Twin{.left = {{c, {.threads = 1}}}, .right = {{c, {.threads = 3}}}};
}

MaybeTwin split_count(const Case& c, const Backend& backend) {
  const Signature signature = backend.capabilities().signature;
  const bool extends = signature == Signature::extend || signature == Signature::legacy_extend;
  if (extends || signature == Signature::batch_prefill) return std::nullopt;  // without splits
  return Twin{.left = {{c, {.kv_splits = 1}}}, .right = {{c, {.kv_splits = 3}}}};
}

/// New tokens in one call, or in two of which the second finds the first's in the pool.
MaybeTwin in_two_chunks(const Case& c, bool windowed) {
  const Mode mode = c.problem.mode;
  if (mode != Mode::extend && mode != Mode::mixed) return std::nullopt;
  if (windowed != c.problem.model.window.has_value()) return std::nullopt;
  Case first = plain(c);
  Case second = first;
  for (std::size_t i = 0; i < c.problem.requests.size(); ++i) {
    const Request& whole = c.problem.requests[i];
    if (whole.new_tokens < 2 || !whole.tree_parent.empty()) return std::nullopt;
    const std::int64_t half = whole.new_tokens / 2;
    first.problem.requests[i].new_tokens = half;
    second.problem.requests[i].committed += half;
    second.problem.requests[i].new_tokens -= half;
  }
  return Twin{.left = {{plain(c), {}}}, .right = {{first, {}}, {second, {}}}};
}

MaybeTwin chunk_split(const Case& c, const Backend&) { return in_two_chunks(c, false); }
MaybeTwin chunk_split_windowed(const Case& c, const Backend&) { return in_two_chunks(c, true); }

// --- Two features that say the same ---

MaybeTwin window_of_everything(const Case& c, const Backend& backend) {
  if (!backend.capabilities().window || c.problem.model.cross_attention) return std::nullopt;
  Case open = plain(c);
  open.problem.model.window.reset();
  Case covered = open;
  covered.problem.model.window = c.problem.max_kv_len();
  if (!lowers(open) || !lowers(covered)) return std::nullopt;  // not with trees or encoders
  return pair_of(open, covered);
}

MaybeTwin chain_mask(const Case& c, const Backend& backend) {
  if (!backend.capabilities().tree_mask) return std::nullopt;
  Case causal = plain(c);
  Problem& p = causal.problem;
  p.mode = Mode::target_verify;
  p.model.window.reset();
  p.model.cross_attention = false;
  p.topk = 1;
  for (Request& request : p.requests) {
    request.new_tokens = p.requests[0].new_tokens;
    request.tree_parent.clear();
    request.encoder_tokens = 0;
  }
  p.pool.num_pages = pages_needed(p) + 3;
  Case chain = causal;
  chain.problem.topk = 2;
  for (Request& request : chain.problem.requests) {
    for (std::int64_t t = 0; t < request.new_tokens; ++t) request.tree_parent.push_back(t - 1);
  }
  if (!lowers(causal) || !lowers(chain)) return std::nullopt;
  Call call = std::get<Call>(call_of(causal, make_slot_map(causal.problem)));
  if (auto* const l = std::get_if<LegacyExtendCall>(&call)) {
    l->custom_mask.reset();  // which a verify step passes for chains too
    l->mask_indptr.reset();
    causal.call = std::move(call);
  }
  return pair_of(causal, chain);
}

/// k_descale doubled and the scale halved: powers of two move no rounding.
MaybeTwin descale_moved_to_the_scale(const Case& c, const Backend&) {
  if (!c.problem.model.k_descale || c.problem.model.mla || c.problem.model.softcap > 0) {
    return std::nullopt;
  }
  Case moved = c;
  *moved.problem.model.k_descale *= 2;
  moved.problem.model.softmax_scale /= 2;
  return pair_of(c, moved);
}

constexpr Relation relations[] = {
    {"page_renaming", "other page numbers for the same keys change nothing", page_renaming},
    {"pool_growth", "a larger pool with the pages at its end changes nothing", pool_growth},
    {"wider_table", "unused table columns change nothing", wider_table},
    {"larger_max_seqlen_k", "a larger max_seqlen_k changes nothing", larger_max_seqlen_k},
    {"poison", "what lies in bytes that must not be read changes nothing", poison},
    {"expanded_kv_heads", "kv heads expanded with stride 0 are the same heads", expanded_kv_heads},
    {"index_dtype", "int32 and int64 lengths and tables say the same", index_dtype},
    {"batch_permutation", "the order of the batch changes nothing", batch_permutation},
    {"request_alone", "a request alone computes what it does in the batch", request_alone},
    {"padding_rows", "padded rows beside it change nothing", padding_rows},
    {"head_group_alone", "the first kv head's group alone computes the same", head_group_alone},
    {"run_twice", "the same run gives the same bits", run_twice},
    {"thread_count", "one thread or three", thread_count},
    {"split_count", "one split of the keys or three", split_count},
    {"chunk_split", "new tokens in one call or in two", chunk_split},
    {"chunk_split_windowed", "the same under a window", chunk_split_windowed},
    {"window_of_everything", "a window that covers everything is no window", window_of_everything},
    {"chain_mask", "the mask of a chain is causality", chain_mask},
    {"descale_moved_to_the_scale", "a factor 2 of k_descale is one of the scale",
     descale_moved_to_the_scale},
    {"decode_steps", "new tokens at once are the same tokens one call each", decode_steps},
    {"decode_steps_windowed", "the same under a window", decode_steps_windowed},
    {"verify_equals_decode", "extend's row t is decode's at that length, one split",
     verify_equals_decode},
    {"verify_equals_decode_windowed", "the same under a window", verify_equals_decode_windowed},
    {"verify_equals_split_decode", "extend's row t is decode's at that length, three splits",
     verify_equals_split_decode},
    {"graph_replays_longer", "a graph captured with one-token requests replays this call",
     graph_replays_longer},
    {"graph_replays_shorter", "a graph captured with full tables replays this call",
     graph_replays_shorter},
    {"graph_replays_padded", "a graph for more requests replays this call, padded",
     graph_replays_padded},
    {"graph_after_eager", "a larger eager call between capture and replay changes nothing",
     graph_after_eager},
    {"graph_lengths_inside", "lengths may be made by the graph", graph_lengths_inside},
};

}  // namespace

Case plain(const Case& c) {
  Case out = c;
  out.recipe = Recipe::normal;
  out.problem.pool.slots.clear();
  return out;
}

bool lowers(const Case& c) {
  return !problem_error(c.problem) &&
         std::holds_alternative<Call>(call_of(c, make_slot_map(c.problem)));
}

std::optional<Case> with_padded_request(const Case& c) {
  const Mode mode = c.problem.mode;
  if (mode != Mode::decode && mode != Mode::target_verify) return std::nullopt;
  Case padded = plain(c);
  Request dummy = padded.problem.requests.front();
  dummy = {.sequence = 99,
           .new_tokens = dummy.new_tokens,
           .tree_parent = dummy.tree_parent,
           .encoder_tokens = dummy.encoder_tokens > 0 ? 1 : 0,
           .live = false};
  padded.problem.requests.push_back(dummy);
  padded.problem.pool.num_pages += 20;
  if (!lowers(padded)) return std::nullopt;
  return padded;
}

std::span<const Relation> all_relations() { return relations; }

const Relation* find_relation(std::string_view id) {
  for (const Relation& relation : relations) {
    if (relation.id == id) return &relation;
  }
  return nullptr;
}

}  // namespace attest
