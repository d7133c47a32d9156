#include <algorithm>
#include <stdexcept>
#include <variant>

#include "contracts/signatures.hpp"
#include "memory/tensor_layout.hpp"
#include "property_tests/large_kv.hpp"
#include "property_tests/power.hpp"

namespace attest {
namespace {

constexpr std::int64_t committed = 37;
constexpr std::int64_t drafts = 4;
/// Elements that strides stay a multiple of: vector loads stay possible.
constexpr std::int64_t step = 64;

bool on_cpu(Signature signature) {
  return signature == Signature::extend || signature == Signature::decode;
}

/// Three kv heads, so that a page straddles every boundary; two where pages must divide it.
Model model_of(const LargeKvCell& cell) {
  Model m;
  m.num_kv_heads = cell.by == LargeKvBy::decoys ? 2 : 3;
  m.num_q_heads = 2 * m.num_kv_heads;
  m.kv_dtype = cell.kv_dtype;
  m.q_dtype = m.out_dtype = cell.kv_dtype == Dtype::f32 ? Dtype::f32 : Dtype::bf16;
  if (is_fp8(cell.kv_dtype)) m.k_descale = m.v_descale = 0.5;
  if (cell.signature == Signature::mla_decode) {
    m.mla = true;
    m.num_q_heads = 16;
    m.num_kv_heads = 1;
    m.head_dim = 576;
    m.v_head_dim = 512;
  }
  return m;
}

Problem problem_of(const LargeKvCell& cell) {
  Problem p;
  p.model = model_of(cell);
  p.mode = cell.signature == Signature::decode ? Mode::decode : Mode::target_verify;
  const std::int64_t requests = cell.by == LargeKvBy::decoys ? 2 : 1;
  for (std::int64_t i = 0; i < requests; ++i) {
    Request r;
    r.sequence = i + 1;
    // The decoys hold as many keys, so that every wrapped offset finds one.
    r.committed = committed;
    r.new_tokens = cell.signature == Signature::decode ? 1 : drafts;
    p.requests.push_back(r);
  }
  if (p.mode != Mode::decode) p.num_draft_tokens = drafts;
  // One token a page where only the slot stride can be large: a CPU pool is a list of slots.
  p.pool.page_size = on_cpu(cell.signature) && cell.by == LargeKvBy::strides ? 1 : 16;
  return p;
}

/// Where the keys lie: pages of each request, and the strides of K and V.
struct Placed {
  std::int64_t first_page = 0;  ///< of request 0; the others of its pages follow
  std::int64_t num_pages = 0;
  KvStrides k, v;
};

std::int64_t pages_of(const Problem& p) {
  return (p.max_kv_len() + p.pool.page_size - 1) / p.pool.page_size;
}
/// Those that the kernel looks up: extend takes new tokens from tensors of their own.
std::int64_t pages_read(const LargeKvCell& cell, const Problem& p) {
  if (cell.signature != Signature::extend) return pages_of(p);
  return (committed + p.pool.page_size - 1) / p.pool.page_size;
}
std::int64_t page_elements(const Problem& p) {
  return p.pool.page_size * p.model.num_kv_heads * p.model.head_dim;
}
std::int64_t edge_of(const LargeKvCell& cell) {
  return cell.aim.boundary.element(static_cast<std::int64_t>(size_bytes(cell.kv_dtype)));
}

/// First of `pages` consecutive pages, `stride` elements apart, on the cell's side of the edge.
std::int64_t first_page(const LargeKvCell& cell, std::int64_t stride, std::int64_t pages) {
  const std::int64_t across = edge_of(cell) / stride;  // the page that holds the edge
  switch (cell.aim.side) {
    case Side::below:
      return across - pages;
    case Side::straddling:
      return across - 1;
    case Side::above:
      break;
  }
  return across + 1;
}

Placed by_page_ids(const LargeKvCell& cell, const Problem& p) {
  Placed placed;
  placed.first_page = first_page(cell, page_elements(p), pages_read(cell, p));
  placed.num_pages = placed.first_page + pages_of(p) + 2;
  return placed;
}

/// 64 pages reach the edge: the pages of K or V lie that far apart, and few are needed.
Placed by_strides(const LargeKvCell& cell, const Problem& p) {
  constexpr std::int64_t pages_to_edge = 64;
  Placed placed;
  const bool below = cell.aim.side == Side::below;
  const std::int64_t reach = edge_of(cell) - (below ? page_elements(p) : 0);
  std::int64_t stride = reach / pages_to_edge / step * step;
  if (!below) stride += step;
  // The last page below ends just before the edge, the first one above begins just behind it.
  placed.first_page = below ? pages_to_edge - pages_read(cell, p) + 1 : pages_to_edge;
  if (cell.aim.side == Side::straddling) placed.first_page -= 1;
  placed.num_pages = placed.first_page + pages_of(p) + 1;
  KvStrides& far = cell.aim.operand == "k" ? placed.k : placed.v;
  far.page = stride;
  if (on_cpu(cell.signature)) far.slot = stride;
  return placed;
}

/// The keys of eight layers side by side: token by token on a CPU, page by page and head first on a
/// GPU.
Placed by_view(const LargeKvCell& cell, const Problem& p) {
  constexpr std::int64_t layers = 8;
  Placed placed;
  const std::int64_t dim = p.model.head_dim;
  const std::int64_t row = p.model.num_kv_heads * dim;
  if (on_cpu(cell.signature)) {
    placed.k = {layers * p.pool.page_size * row, layers * row, dim};
  } else {
    placed.k = {layers * p.pool.page_size * row, dim, p.pool.page_size * dim};
  }
  placed.v = placed.k;
  placed.first_page = first_page(cell, placed.k.page, pages_read(cell, p));
  placed.num_pages = placed.first_page + pages_of(p) + 2;
  return placed;
}

/// Request 1 has the pages of request 0 less 2^31 or 2^32 bytes or elements.
Placed by_decoys(const LargeKvCell& cell, const Problem& p) {
  Placed placed;
  // From page 1 on: an identity table would prove nothing.
  placed.first_page = edge_of(cell) / page_elements(p) + 1;
  placed.num_pages = placed.first_page + pages_of(p) + 2;
  return placed;
}

Placed placed_by(const LargeKvCell& cell, const Problem& p) {
  switch (cell.by) {
    case LargeKvBy::strides:
      return by_strides(cell, p);
    case LargeKvBy::view:
      return by_view(cell, p);
    case LargeKvBy::decoys:
      return by_decoys(cell, p);
    case LargeKvBy::page_ids:
      break;
  }
  return by_page_ids(cell, p);
}

/// Pages `first` onwards, the second before the first, so that no table is an identity.
std::vector<SlotRun> runs_from(const Problem& p, const Request& request, std::int64_t first) {
  const std::int64_t size = p.pool.page_size;
  const std::int64_t pages = (request.kv_len() + size - 1) / size;
  std::vector<SlotRun> runs;
  for (std::int64_t i = 0; i < pages; ++i) {
    const std::int64_t at = i < 2 && pages > 1 ? 1 - i : i;
    runs.push_back({(first + at) * size, std::min(size, request.kv_len() - i * size)});
  }
  return runs;
}

void place(const LargeKvCell& cell, const Placed& placed, Problem& p) {
  p.pool.num_pages = placed.num_pages;
  p.pool.k = placed.k;
  p.pool.v = placed.v;
  std::int64_t first = placed.first_page;
  const std::int64_t apart =
      cell.by == LargeKvBy::decoys ? edge_of(cell) / page_elements(p) : pages_of(p) + 1;
  for (const Request& request : p.requests) {
    p.pool.slots.push_back(runs_from(p, request, first));
    first -= apart;
  }
}

void set_dtype(IntArray& array, Dtype dtype) { array.meta.dtype = dtype; }

void set_widths(const LargeKvCell& cell, Call& call) {
  if (auto* c = std::get_if<UnifiedCall>(&call)) {
    set_dtype(c->seqused_k, cell.length_dtype);
    set_dtype(c->block_table, cell.table_dtype);
  } else if (auto* c = std::get_if<ExtendCall>(&call)) {
    set_dtype(c->req_to_token, cell.table_dtype);
  } else if (auto* c = std::get_if<DecodeCall>(&call)) {
    set_dtype(c->req_to_token, cell.table_dtype);
  } else {
    set_dtype(std::get<MlaDecodeCall>(call).kv_indices, cell.table_dtype);
  }
}

Case made(const LargeKvCell& cell, Problem problem, std::uint64_t index) {
  Case c;
  c.problem = std::move(problem);
  c.signature = cell.signature;
  c.recipe = Recipe::recall;
  c.seed = index + 1;
  if (const auto error = problem_error(c.problem)) {
    throw std::logic_error("large-KV cell " + cell.name() + ": " + *error);
  }
  give_power(c);
  Lowered<Call> lowered = lower(cell.signature, c.problem, make_slot_map(c.problem));
  if (const auto* no = std::get_if<Unsupported>(&lowered)) {
    throw std::logic_error("large-KV cell " + cell.name() + ": " + no->reason);
  }
  Call call = std::move(std::get<Call>(lowered));
  set_widths(cell, call);
  c.call = std::move(call);
  return c;
}

}  // namespace

Case case_of(const LargeKvCell& cell, std::uint64_t index) {
  Problem p = problem_of(cell);
  place(cell, placed_by(cell, p), p);
  Case c = made(cell, std::move(p), index);
  c.aim = cell.aim;
  return c;
}

Case small_twin_of(const LargeKvCell& cell, std::uint64_t index) {
  const Case large = case_of(cell, index);
  Problem p = large.problem;
  p.pool.slots.clear();
  p.pool.k = p.pool.v = {};
  p.pool.num_pages = 4 * pages_of(p);
  std::int64_t first = 1;
  for (const Request& request : p.requests) {
    p.pool.slots.push_back(runs_from(p, request, first));
    first += pages_of(p) + 1;
  }
  Case c = made(cell, std::move(p), index);
  c.seed = large.seed;
  c.recipe = large.recipe;
  return c;
}

std::int64_t dense_bytes(const Case& c) {
  const auto span = [&](const TensorMeta& meta) {
    return pool_layout(meta, c.problem.pool.page_size, "pool").span_bytes();
  };
  if (!c.call) return 0;
  const Call& call = *c.call;
  if (const auto* u = std::get_if<UnifiedCall>(&call)) return span(u->k) + span(u->v);
  if (const auto* e = std::get_if<ExtendCall>(&call)) {
    return span(e->k_buffer) + span(e->v_buffer);
  }
  if (const auto* d = std::get_if<DecodeCall>(&call)) {
    return span(d->k_buffer) + span(d->v_buffer);
  }
  return span(std::get<MlaDecodeCall>(call).kv_buffer);
}

}  // namespace attest
