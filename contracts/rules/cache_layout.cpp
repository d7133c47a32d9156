#include "contracts/rules/cache_layout.hpp"

#include <string>

#include "contracts/rules/finding_text.hpp"
#include "contracts/signatures/pool_view.hpp"
#include "contracts/storage_label.hpp"

namespace attest {
namespace {

std::string place_text(const std::string& storage, std::int64_t element) {
  return "element " + std::to_string(element) + " of storage " + storage;
}

void expect_pool(std::string_view name, const TensorMeta& view, const Problem& problem,
                 const KvStrides& strides, std::int64_t dim, Report& report) {
  if (addresses_pool(view, problem, strides, dim)) {
    const bool known = !strides.storage.empty() && !view.storage.empty();
    const bool there =
        same_storage(view.storage, strides.storage) && view.storage_offset == strides.base;
    if (!known || there) return;
    report.add(std::string(name), place_text(view.storage, view.storage_offset),
               place_text(strides.storage, strides.base) + ", where the layer's pool begins");
    return;
  }
  report.add(std::string(name) + ".strides", strides_text(view) + " for " + shape_text(view),
             strides_text(paged_view(problem, strides, dim)) + " for pages of " +
                 std::to_string(problem.pool.page_size));
}

void cache_is_the_pool(const UnifiedCall& call, const Truth& truth, Report& report) {
  const Problem& p = truth.problem;
  expect_pool("k", call.k, p, p.pool.k, p.model.head_dim, report);
  expect_pool("v", call.v, p, p.pool.v, p.model.v_head_dim, report);
}

void cache_is_the_pool(const MlaDecodeCall& call, const Truth& truth, Report& report) {
  const Problem& p = truth.problem;
  expect_pool("kv_buffer", call.kv_buffer, p, p.pool.k, p.model.head_dim, report);
}

void cache_is_the_pool(const BatchPrefillCall& call, const Truth& truth, Report& report) {
  const Problem& p = truth.problem;
  expect_pool("k", with_pages(call.k), p, p.pool.k, p.model.head_dim, report);
  expect_pool("v", with_pages(call.v), p, p.pool.v, p.model.v_head_dim, report);
}

void cache_is_the_pool(const PagedRaggedCall& call, const Truth& truth, Report& report) {
  const Problem& p = truth.problem;
  expect_pool("key_cache", call.key_cache, p, p.pool.k, p.model.head_dim, report);
  expect_pool("value_cache", call.value_cache, p, p.pool.v, p.model.v_head_dim, report);
}

void cache_is_the_pool(const LegacyExtendCall& call, const Truth& truth, Report& report) {
  const Problem& p = truth.problem;
  expect_pool("k_buffer", with_pages(call.k_buffer), p, p.pool.k, p.model.head_dim, report);
  expect_pool("v_buffer", with_pages(call.v_buffer), p, p.pool.v, p.model.v_head_dim, report);
}

/// Where a block lies and where its heads; what lies inside is judged by cpu_cache_rules.
void cache_is_the_pool(const VllmCpuCall& call, const Truth& truth, Report& report) {
  const Problem& p = truth.problem;
  const auto expect = [&](std::string_view name, const TensorMeta& view, const KvStrides& pool,
                          std::int64_t dim) {
    expect_pool(name, swap_heads_and_tokens(view), p, heads_first(p, pool, dim), dim, report);
  };
  expect("key_cache", call.key_cache, p.pool.k, p.model.head_dim);
  expect("value_cache", call.value_cache, p.pool.v, p.model.v_head_dim);
}

constexpr Rule rules[] = {
    {.id = "layout.cache_is_the_pool",
     .says = "k and v begin where the layer's pool does, and their strides address its slots",
     .why = "a view of another page size, of interleaved storage or of another layer reads other "
            "tokens' bytes",
     .source = "ROCm/aiter#3498; sgl-project/sglang#25556",
     .unified = cache_is_the_pool,
     .mla_decode = cache_is_the_pool,
     .batch_prefill = cache_is_the_pool,
     .paged_ragged = cache_is_the_pool,
     .legacy_extend = cache_is_the_pool,
     .vllm_cpu = cache_is_the_pool},
};

}  // namespace

std::span<const Rule> cache_layout_rules() { return rules; }

}  // namespace attest
