#include <algorithm>
#include <string>
#include <vector>

#include "backends/scalar/execution.hpp"
#include "backends/scalar/listed_pages.hpp"
#include "backends/scalar/row_group.hpp"
#include "backends/scalar/signatures.hpp"
#include "backends/scalar/table_walk.hpp"

namespace attest {
namespace {

std::int64_t length_of(const PagedRaggedCall& call, const ListedPages& listed, std::int64_t i) {
  const std::int64_t pages = listed.pages(i);
  std::int64_t length = pages;
  if (listed.page_size > 1) {
    const std::int64_t last = array_entry(call.kv_last_page_lens, i, "kv_last_page_lens");
    const std::int64_t full = std::min(pages - 1, (std::int64_t{1} << 40) / listed.page_size);
    length = pages > 0 ? full * listed.page_size + saturated_count(last) : 0;
  }
  // One block of the grid per partition: keys past the last one are never read.
  const std::int64_t size = std::clamp<std::int64_t>(call.partition_size, 0, 1 << 20);
  const std::int64_t count = std::clamp<std::int64_t>(call.max_num_partitions, 0, 1 << 20);
  return std::min(length, size * count);
}

void refuse_what_is_not_taken(const PagedRaggedCall& call) {
  if (call.kv_cache_layout != "NHD") {
    throw KernelRefusal("kv_cache_layout " + call.kv_cache_layout + ": only NHD is taken here");
  }
  if (call.mtp != 1) {
    throw KernelRefusal("mtp = " + std::to_string(call.mtp) + ": one query row a request");
  }
  if (call.block_size != call.key_cache.size(1)) {
    throw KernelRefusal("block_size " + std::to_string(call.block_size) + " for pages of " +
                        std::to_string(call.key_cache.size(1)) + " tokens");
  }
}

}  // namespace

RunResult run_paged_ragged(const PagedRaggedCall& call, const TensorSource& source,
                           const RunOptions& options, const Mistake& mistake) {
  refuse_what_is_not_taken(call);
  const KvPools pools(source, call.key_cache, call.value_cache, Stored::committed_and_new);
  Execution run(source, options, mistake, call.query, call.out, OutLayout::strided);
  run.use_pools(pools);
  run.set_features(call.scale, call.logits_soft_cap, std::nullopt);
  run.set_descales(false, call.k_scale.has_value(), call.v_scale.has_value());
  run.set_splits(call.max_num_partitions);
  const ListedPages listed{call.kv_indptr, call.kv_page_indices, "kv_page_indices",
                           std::max<std::int64_t>(saturated_count(call.block_size), 1)};
  const std::int64_t rows = std::min(call.query.size(0), call.out.size(0));
  std::vector<RowGroup> groups;
  for (std::int64_t i = 0; i < rows; ++i) {
    RequestShape shape;
    shape.first_row = i;
    shape.rows = 1;
    shape.page_size = listed.page_size;
    shape.length = length_of(call, listed, i);
    groups.push_back(make_group(shape, rows, mistake.fault, [&](std::int64_t token) {
      return listed.key(pools, i, token, mistake);
    }));
  }
  return run.run(groups, pools);
}

}  // namespace attest
