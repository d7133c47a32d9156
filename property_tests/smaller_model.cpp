#include <algorithm>
#include <cmath>

#include "property_tests/smaller_parts.hpp"

namespace attest {
namespace {

void set_dims(Model& model, std::int64_t dim, std::int64_t v_dim) {
  const double old_default = 1 / std::sqrt(static_cast<double>(model.head_dim));
  const bool by_dim = std::abs(model.softmax_scale / old_default - 1) < 1e-6;
  model.head_dim = dim;
  model.v_head_dim = v_dim;
  if (by_dim) model.softmax_scale = 1 / std::sqrt(static_cast<double>(dim));
}

void drop_strides(Problem& p) { p.pool.k = p.pool.v = {}; }

void drop_encoder(Problem& p) {
  p.model.cross_attention = false;
  for (Request& r : p.requests) r.encoder_tokens = 0;
}

void drop_trees(Problem& p) {
  for (Request& r : p.requests) r.tree_parent.clear();
  p.topk = 1;
}

void drop_fp8(Problem& p) {
  Model& m = p.model;
  if (is_fp8(m.q_dtype)) m.q_dtype = Dtype::bf16;
  m.kv_dtype = m.q_dtype;
  m.q_descale = m.k_descale = m.v_descale = std::nullopt;
}

}  // namespace

void propose_fewer_heads(Proposals& proposals) {
  const Model& from = proposals.from().problem.model;
  const std::int64_t group = from.num_q_heads / from.num_kv_heads;
  const auto heads = [&](std::int64_t q, std::int64_t kv) {
    proposals.add([=](Problem& p) {
      p.model.num_q_heads = q;
      p.model.num_kv_heads = kv;
      drop_strides(p);  // they were made for the old heads
    });
  };
  heads(group, 1);
  if (from.num_kv_heads > 2) heads(2 * group, 2);
  heads(from.num_kv_heads, from.num_kv_heads);
  if (group > 2) heads(from.num_kv_heads * ((group + 1) / 2), from.num_kv_heads);
  for (const std::int64_t dim : {32, 64}) {
    proposals.add([dim](Problem& p) {
      set_dims(p.model, dim, dim);
      drop_strides(p);
    });
  }
}

void propose_fewer_features(Proposals& proposals) {
  proposals.add([](Problem& p) { p.pool.slots.clear(); });
  proposals.add([](Problem& p) { p.model.window.reset(); });
  proposals.add([](Problem& p) { p.model.softcap = 0; });
  proposals.add([](Problem& p) { p.model.sinks = false; });
  proposals.add(drop_trees);
  proposals.add(drop_encoder);
  proposals.add([](Problem& p) {
    for (Request& r : p.requests) r.shared_prefix = 0;
  });
  proposals.add(drop_strides);
  proposals.add(drop_fp8);
  proposals.add([](Problem& p) {
    p.model.softmax_scale = 1 / std::sqrt(static_cast<double>(p.model.head_dim));
  });
  proposals.add([](Problem& p) { p.context_len = 0; });
  proposals.add([](Problem& p) { p.num_draft_tokens.reset(); });
  proposals.add([](Problem& p) { p.path = Path::eager; });
  Case normal = proposals.from();
  normal.recipe = Recipe::normal;
  proposals.keep(std::move(normal));
  Case plain = proposals.from();
  plain.poison = {};
  proposals.keep(std::move(plain));
}

void propose_smaller_pool(Proposals& proposals) {
  const Problem& from = proposals.from().problem;
  proposals.add([](Problem& p) { p.pool.placement = Placement::permuted; });
  proposals.add([](Problem& p) {
    p.pool.page_size = std::min<std::int64_t>(p.pool.page_size, 16);
    p.pool.slots.clear();
    p.pool.num_pages = std::max(p.pool.num_pages, pages_needed(p) + 1);
    drop_strides(p);
  });
  const std::int64_t needed = pages_needed(from);
  for (const std::int64_t pages : {needed, needed + 1, (needed + from.pool.num_pages) / 2}) {
    proposals.add([pages](Problem& p) {
      p.pool.num_pages = pages;
      p.pool.slots.clear();
    });
  }
}

}  // namespace attest
