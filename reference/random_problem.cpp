#include "reference/random_problem.hpp"

#include <array>
#include <cmath>
#include <random>

namespace attest {
namespace {

/// Draws, by modulo: the same on every standard library.
struct Draw {
  std::mt19937_64 random;
  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
  }
  bool one_in(std::int64_t n) { return below(n) == 0; }
  template <class T, std::size_t n>
  T of(const std::array<T, n>& choices) {
    return choices[static_cast<std::size_t>(below(static_cast<std::int64_t>(n)))];
  }
};

Model random_model(Draw& draw) {
  Model m;
  const auto [q_heads, kv_heads] = draw.of(std::array<std::pair<std::int64_t, std::int64_t>, 6>{
      {{1, 1}, {3, 3}, {4, 2}, {8, 1}, {6, 2}, {5, 1}}});
  m.num_q_heads = q_heads;
  m.num_kv_heads = kv_heads;
  m.head_dim = draw.of(std::array<std::int64_t, 6>{8, 16, 17, 40, 64, 80});
  m.v_head_dim = draw.one_in(3) ? draw.of(std::array<std::int64_t, 3>{8, 24, 65}) : m.head_dim;
  m.softmax_scale = 1 / std::sqrt(static_cast<double>(m.head_dim));
  const std::array<Dtype, 3> wide = {Dtype::bf16, Dtype::f16, Dtype::f32};
  m.q_dtype = m.kv_dtype = m.out_dtype = draw.of(wide);
  if (draw.one_in(3)) {
    m.kv_dtype = draw.of(std::array<Dtype, 2>{Dtype::fp8_e4m3fn, Dtype::fp8_e4m3fnuz});
    if (draw.one_in(2)) m.q_dtype = m.kv_dtype;
    m.k_descale = 0.5;
    m.v_descale = 1.75;
    if (draw.one_in(2)) m.q_descale = 1.25;
  }
  if (draw.one_in(4)) m.softcap = draw.of(std::array<double, 2>{5, 30});
  m.sinks = draw.one_in(3);
  if (draw.one_in(8)) {
    m.cross_attention = true;
  } else if (draw.one_in(4)) {
    m.window = 1 + draw.below(40);
  }
  if (draw.one_in(8)) {
    m.mla = true;
    m.num_q_heads = 6;
    m.num_kv_heads = 1;
    m.v_head_dim = m.head_dim - 8 > 0 ? m.head_dim - 8 : m.head_dim;
  }
  return m;
}

Request random_request(Draw& draw, const Model& m, std::int64_t sequence) {
  Request r;
  r.sequence = sequence;
  r.committed = draw.one_in(5) ? 0 : draw.below(90);
  r.new_tokens = 1 + draw.below(6);
  if (!m.window && draw.one_in(3)) {
    for (std::int64_t t = 0; t < r.new_tokens; ++t) r.tree_parent.push_back(draw.below(t + 1) - 1);
  }
  if (r.committed > 4 && draw.one_in(4)) {
    r.shared_prefix = 1 + draw.below(r.committed);
    r.shared_sequence = 1000;
  }
  if (m.cross_attention) r.encoder_tokens = 1 + draw.below(50);
  r.live = !draw.one_in(8);
  return r;
}

}  // namespace

Problem random_problem(std::uint64_t index) {
  Draw draw{std::mt19937_64(index)};
  Problem p;
  p.model = random_model(draw);
  const std::int64_t requests = 1 + draw.below(4);
  for (std::int64_t i = 0; i < requests; ++i) {
    p.requests.push_back(random_request(draw, p.model, 10 + i));
  }
  p.pool.page_size = draw.of(std::array<std::int64_t, 4>{1, 5, 16, 64});
  p.pool.num_pages = 16 + 600 / p.pool.page_size;
  p.pool.placement = draw.of(
      std::array<Placement, 3>{Placement::permuted, Placement::sequential, Placement::high});
  p.pool.seed = index;
  if (draw.one_in(3)) {
    p.pool.k.head = p.model.head_dim + 3;
    p.pool.k.slot = p.model.num_kv_heads * p.pool.k.head + 5;
    p.pool.k.page = p.pool.page_size * p.pool.k.slot + 7;
  }
  return p;
}

TensorSource random_source(std::uint64_t index) {
  const std::array<Recipe, 4> recipes = {Recipe::normal, Recipe::recall, Recipe::needle,
                                         Recipe::features};
  return {random_problem(index), recipes[index % recipes.size()], index};
}

}  // namespace attest
