#include <algorithm>

#include "property_tests/generator_parts.hpp"
#include "property_tests/null_oracles.hpp"

namespace attest {
namespace {

/// Views into wider rows: interleaved K and V, or rows padded for alignment.
void draw_strides(Draw& draw, const GeneratorOptions& options, Problem& problem) {
  const Model& model = problem.model;
  if (model.mla || !draw.chance(10)) return;
  if (options.signature == Signature::vllm_cpu) {
    // A head's block of V lies behind its block of K.
    const std::int64_t head = 2 * problem.pool.page_size * model.head_dim;
    problem.pool.k = {.page = model.num_kv_heads * head, .slot = model.head_dim, .head = head};
    problem.pool.v = problem.pool.k;
    return;
  }
  const auto strided = [&](std::int64_t dim) {
    KvStrides strides;
    strides.head = dim + draw.pick<std::int64_t>({0, 8, 64});
    strides.slot = model.num_kv_heads * strides.head * draw.pick<std::int64_t>({1, 2});
    strides.page = problem.pool.page_size * strides.slot;
    return strides;
  };
  problem.pool.k = strided(model.head_dim);
  problem.pool.v = strided(model.v_head_dim);
}

/// A pool whose last pages lie around an edge of 32-bit arithmetic: 2^31 bytes, 2^31 elements of a
/// 16-bit type, 2^32 elements. Only the pages in use cost memory (memory/kv_pool.hpp).
void cross_an_address_edge(Draw& draw, Problem& problem) {
  const Model& model = problem.model;
  Pool& pool = problem.pool;
  const std::int64_t slot = pool.k.slot ? pool.k.slot : model.num_kv_heads * model.head_dim;
  const std::int64_t page_bytes = std::max(pool.page_size * slot, pool.k.page) *
                                  static_cast<std::int64_t>(size_bytes(model.kv_dtype));
  const std::int64_t edge = std::int64_t{1} << draw.between(31, 33);
  const std::int64_t above = draw.between(0, pages_needed(problem));  // the rest lies below
  pool.num_pages = std::max(pool.num_pages, edge / page_bytes + above);
  pool.placement = Placement::high;
}

/// A windowed layer's own pool: pages older than any visible key are given back (slot -1).
void evict_old_pages(Draw& draw, Problem& problem) {
  const bool encoder = std::any_of(problem.requests.begin(), problem.requests.end(),
                                   [](const Request& r) { return r.encoder_tokens > 0; });
  if (!problem.model.window || encoder || !draw.chance(40)) return;
  const SlotMap slots = make_slot_map(problem);
  for (std::size_t i = 0; i < problem.requests.size(); ++i) {
    const Request& request = problem.requests[i];
    const std::int64_t oldest = request.committed - *problem.model.window + 1;  // seen by token 0
    std::vector<SlotRun> runs;
    for (std::int64_t t = 0; t < request.kv_len(); t += slots.page_size) {
      const std::int64_t count = std::min(slots.page_size, request.kv_len() - t);
      const bool dead = t + count <= oldest;
      runs.push_back({dead ? -1 : slots.slot(i, t), count});
    }
    problem.pool.slots.push_back(std::move(runs));
  }
}

}  // namespace

std::int64_t draw_page_size(Draw& draw, const GeneratorOptions& options) {
  const bool blocks = options.signature == Signature::vllm_cpu;
  const std::int64_t drawn =
      blocks ? draw.pick<std::int64_t>({16, 32, 64, 128})
      : options.signature == Signature::unified
          ? draw.pick<std::int64_t>({1, 16, 16, 16, 48, 64, 64, 128})
          : draw.pick<std::int64_t>({1, 1, 16, 64});  // these kernels index slots
  if (!options.capabilities || options.capabilities->page_sizes.empty()) return drawn;
  const std::vector<std::int64_t>& takes = options.capabilities->page_sizes;
  if (std::find(takes.begin(), takes.end(), drawn) != takes.end()) return drawn;
  return takes[static_cast<std::size_t>(draw.below(static_cast<std::int64_t>(takes.size())))];
}

void draw_pool(Draw& draw, const GeneratorOptions& options, Problem& problem) {
  Pool& pool = problem.pool;
  const std::int64_t needed = pages_needed(problem);
  pool.num_pages =
      needed + (draw.chance(80) ? draw.between(1, 12) : draw.between(needed, 3 * needed) + 1);
  const std::int64_t kind = draw.below(100);
  pool.placement = kind < 70   ? Placement::permuted
                   : kind < 90 ? Placement::high
                               : Placement::sequential;
  pool.seed = static_cast<std::uint64_t>(draw.below(1 << 20));
  draw_strides(draw, options, problem);
  const bool large = !options.capabilities || options.capabilities->large_pools;
  if (draw.chance(4) && large) cross_an_address_edge(draw, problem);
  // One page in a pool of two is the identity half the time; a few seeds on, it is not. A single
  // request placed in sequence always is.
  if (has_identity_table(problem, make_slot_map(problem))) pool.placement = Placement::permuted;
  while (has_identity_table(problem, make_slot_map(problem))) ++pool.seed;
  evict_old_pages(draw, problem);
}

}  // namespace attest
