#include <algorithm>
#include <array>

#include "property_tests/generator_parts.hpp"

namespace attest {
namespace {

constexpr std::int64_t first_shared_sequence = 1000;

/// Multiply-adds of one request so that a whole case stays near `total`: the scalar kernel manages
/// about 1e9 a second and runs twice.
std::int64_t budget_per_request(Draw& draw, const GeneratorOptions& options,
                                std::int64_t requests) {
  const std::int64_t total = draw.chance(20) ? 16'000'000 : 4'000'000;
  return total * std::max<std::int64_t>(options.max_kv, 64) / 512 / requests;
}

/// Longest KV of a request with `rows` query rows within the budget; never so short that a page
/// edge and a causal edge have no room.
std::int64_t kv_limit(const Model& model, const GeneratorOptions& options, std::int64_t budget,
                      std::int64_t rows) {
  const std::int64_t per_pair = model.num_q_heads * (model.head_dim + model.v_head_dim);
  return std::clamp<std::int64_t>(budget / (rows * per_pair), std::min(rows + 24, options.max_kv),
                                  options.max_kv);
}

/// Length near an edge of `unit`-sized blocks.
std::int64_t near_edge(Draw& draw, std::int64_t unit, std::int64_t limit) {
  return unit * draw.between(1, limit / unit) + draw.between(-1, 1);
}

/// Keys a request holds after the step, new tokens included: page and tile edges, the split edge of
/// short contexts, nothing committed at all, or anything.
std::int64_t draw_kv_len(Draw& draw, std::int64_t page_size, std::int64_t new_tokens,
                         std::int64_t limit) {
  const std::int64_t kind = draw.below(100);
  std::int64_t length = draw.between(new_tokens, limit);
  if (kind < 30) length = near_edge(draw, page_size, limit);
  if (kind >= 30 && kind < 45) length = near_edge(draw, 64, limit);
  if (kind >= 45 && kind < 55) length = new_tokens;  // committed 0; one key when it decodes
  return std::clamp(length, new_tokens, std::max(new_tokens, limit));
}

/// AITER's MLA kernels: code objects exist for powers of two, and up to 4 with 16-bit q over an fp8
/// cache (ROCm/aiter#2720, #4752); other lengths up to 8 run, on the next kernel up.
std::int64_t draw_mla_length(Draw& draw, const Model& model, const GeneratorOptions& options) {
  const bool fp8_cache_only = is_fp8(model.kv_dtype) && !is_fp8(model.q_dtype);
  const std::int64_t longest = std::min<std::int64_t>(fp8_cache_only ? 4 : 8, options.max_kv);
  const std::int64_t length =
      draw.chance(80) ? draw.pick<std::int64_t>({1, 2, 4, 8}) : draw.between(1, 8);
  return std::min(length, longest);
}

std::int64_t draw_new_tokens(Draw& draw, const BatchPlan& plan, std::int64_t max_kv) {
  switch (plan.mode) {
    case Mode::target_verify:
      // Wider trees than a byte, a tile's row or a word has bits.
      if (plan.tree && draw.chance(15)) return std::min(draw.between(9, 40), max_kv);
      return std::min(draw.between(1, 8), max_kv);
    case Mode::draft_extend_v2:
      return std::min(draw.between(1, 6), max_kv);
    case Mode::extend:
      return std::min(draw.chance(70) ? draw.between(1, 24) : draw.between(24, 80), max_kv);
    case Mode::mixed:
      return draw.chance(50) ? 1 : std::min(draw.between(2, 40), max_kv);
    default:
      return 1;
  }
}

/// parent[t] < t; a first token that continues the prefix, later ones hang anywhere before.
std::vector<std::int64_t> draw_tree(Draw& draw, std::int64_t tokens) {
  std::vector<std::int64_t> parent(static_cast<std::size_t>(tokens), -1);
  for (std::int64_t t = 1; t < tokens; ++t) {
    parent[static_cast<std::size_t>(t)] = draw.between(0, t - 1);
  }
  return parent;
}

/// A radix-cache hit: some requests begin with the same tokens, whole pages of them or not.
void share_prefixes(Draw& draw, Problem& problem) {
  if (problem.requests.size() < 2 || !draw.chance(15)) return;
  std::int64_t shortest = problem.requests[0].committed;
  for (const Request& request : problem.requests) shortest = std::min(shortest, request.committed);
  if (shortest == 0) return;
  std::int64_t shared = draw.between(1, shortest);
  const std::int64_t page = problem.pool.page_size;
  if (draw.chance(60) && shared >= page) shared -= shared % page;
  for (Request& request : problem.requests) {
    if (draw.chance(25)) continue;
    request.shared_prefix = shared;
    request.shared_sequence = first_shared_sequence;
  }
}

/// Rows that pad a batch to a captured size; their output means nothing.
void pad_batch(Draw& draw, const GeneratorOptions& options, Problem& problem) {
  const bool pads = problem.mode == Mode::decode || problem.mode == Mode::target_verify;
  if (!pads || !draw.chance(15)) return;
  const std::int64_t room =
      options.max_requests - static_cast<std::int64_t>(problem.requests.size());
  for (std::int64_t i = draw.between(1, std::min<std::int64_t>(2, room)); i > 0 && room > 0; --i) {
    Request dummy;
    dummy.sequence = static_cast<std::int64_t>(problem.requests.size()) + 1;
    dummy.new_tokens = problem.requests[0].new_tokens;
    dummy.tree_parent = problem.requests[0].tree_parent;
    dummy.live = false;
    problem.requests.push_back(dummy);
  }
}

/// Whisper-like layers: encoder keys before the text; a cross-attention layer sees them alone.
void add_encoder(Draw& draw, const GeneratorOptions& options, const BatchPlan& plan,
                 Problem& problem) {
  const bool takes =
      options.signature == Signature::extend || options.signature == Signature::decode;
  const Model& model = problem.model;
  const bool plain = !model.window && !model.mla && !plan.tree && problem.topk == 1;
  if (!takes || !plain || problem.mode == Mode::draft_decode || !draw.chance(6)) return;
  problem.model.cross_attention = draw.chance(60);
  for (Request& request : problem.requests) {
    request.encoder_tokens = draw.between(1, 48);
    request.shared_prefix = 0;
  }
}

/// One request per branch: the branches of a request share its committed keys and own their drafts.
void draw_branches(Draw& draw, const GeneratorOptions& options, Problem& problem) {
  problem.topk = std::min(draw.pick<std::int64_t>({1, 1, 2, 4}), options.max_requests);
  problem.draft_step = draw.between(0, 3);
  problem.num_draft_tokens = 4;
  const std::int64_t bases =
      draw.between(1, std::max<std::int64_t>(1, options.max_requests / problem.topk));
  const std::int64_t budget = budget_per_request(draw, options, bases * problem.topk);
  const std::int64_t limit = kv_limit(problem.model, options, budget, 1);
  for (std::int64_t b = 0; b < bases; ++b) {
    const std::int64_t least = problem.draft_step + 2;  // a committed token and the chain
    const std::int64_t kv =
        draw_kv_len(draw, problem.pool.page_size, std::min(least, limit), limit);
    for (std::int64_t t = 0; t < problem.topk; ++t) {
      Request branch;
      branch.sequence = b * problem.topk + t + 1;
      branch.committed = std::max(kv, least) - 1;
      if (problem.topk > 1) {
        branch.shared_prefix = branch.committed - problem.draft_step;
        branch.shared_sequence = first_shared_sequence + b;
      }
      problem.requests.push_back(branch);
    }
  }
}

void draw_plain(Draw& draw, const GeneratorOptions& options, const BatchPlan& plan,
                Problem& problem) {
  const std::int64_t count = draw.between(1, options.max_requests);
  const std::int64_t budget = budget_per_request(draw, options, count);
  const bool drafts = plan.mode == Mode::target_verify || plan.mode == Mode::draft_extend_v2;
  const std::int64_t equal = problem.model.mla && drafts
                                 ? draw_mla_length(draw, problem.model, options)
                                 : draw_new_tokens(draw, plan, options.max_kv);
  for (std::int64_t i = 0; i < count; ++i) {
    Request request;
    request.sequence = i + 1;
    request.new_tokens = plan.uniform ? equal : draw_new_tokens(draw, plan, options.max_kv);
    const std::int64_t limit = kv_limit(problem.model, options, budget, request.new_tokens);
    request.committed =
        draw_kv_len(draw, problem.pool.page_size, request.new_tokens, limit) - request.new_tokens;
    if (plan.tree) request.tree_parent = draw_tree(draw, request.new_tokens);
    problem.requests.push_back(request);
  }
  if (plan.tree) problem.topk = draw.between(2, 4);
  if (!drafts) return;
  // The server argument: what start-up configured, not what this batch holds, unless one length is
  // the kernel's contract.
  problem.num_draft_tokens = plan.uniform ? equal : draw.between(1, 8);
}

}  // namespace

BatchPlan draw_plan(Draw& draw, const GeneratorOptions& options) {
  static constexpr std::array unified = {
      Mode::decode,        Mode::decode,        Mode::extend,         Mode::mixed,
      Mode::target_verify, Mode::target_verify, Mode::target_verify,  Mode::target_verify,
      Mode::target_verify, Mode::draft_decode,  Mode::draft_extend_v2};
  static constexpr std::array extend = {Mode::extend,        Mode::mixed,
                                        Mode::target_verify, Mode::target_verify,
                                        Mode::target_verify, Mode::draft_extend_v2};
  static constexpr std::array decode = {Mode::decode, Mode::decode, Mode::draft_decode};
  static constexpr std::array mla = {Mode::decode, Mode::target_verify, Mode::target_verify,
                                     Mode::draft_extend_v2};
  static constexpr std::array prefill = {Mode::extend, Mode::mixed, Mode::target_verify,
                                         Mode::draft_extend_v2, Mode::draft_extend_v2};
  static constexpr std::array vllm = {
      Mode::decode,        Mode::decode,        Mode::extend,
      Mode::mixed,         Mode::mixed,         Mode::target_verify,
      Mode::target_verify, Mode::target_verify, Mode::draft_extend_v2};
  static constexpr std::array<std::span<const Mode>, all_signatures.size()> served = {
      unified, extend, decode, mla, prefill, decode, extend, vllm};
  BatchPlan plan;
  plan.mode = draw.pick(served[static_cast<std::size_t>(options.signature)]);
  const bool trees = options.capabilities ? options.capabilities->tree_mask
                                          : options.signature == Signature::extend ||
                                                options.signature == Signature::legacy_extend;
  plan.tree = trees && plan.mode == Mode::target_verify && draw.chance(40);
  const bool one_length = plan.tree && options.signature == Signature::extend;
  plan.uniform = one_length || options.signature == Signature::mla_decode || draw.chance(20);
  return plan;
}

void draw_requests(Draw& draw, const GeneratorOptions& options, const BatchPlan& plan,
                   Problem& problem) {
  problem.mode = plan.mode;
  if (plan.mode == Mode::draft_decode) {
    draw_branches(draw, options, problem);
  } else {
    draw_plain(draw, options, plan, problem);
    share_prefixes(draw, problem);
    pad_batch(draw, options, problem);
  }
  add_encoder(draw, options, plan, problem);
  if (draw.chance(50)) problem.context_len = problem.max_kv_len() + draw.between(0, 200);
}

}  // namespace attest
