#include "backends/scalar/listed_pages.hpp"

#include <string>

#include "backends/scalar/table_walk.hpp"

namespace attest {

std::int64_t ListedPages::pages(std::int64_t i) const {
  return saturated_count(array_entry(indptr, i + 1, "kv_indptr")) -
         saturated_count(array_entry(indptr, i, "kv_indptr"));
}

KeyRow ListedPages::key(const KvPools& pools, std::int64_t i, std::int64_t token,
                        const Mistake& mistake) const {
  const WrapModel wrap = wrap_of(mistake, indices.meta.dtype == Dtype::int32);
  const bool stale = mistake.fault == Fault::stale_page && token < stale_slots && i > 0;
  const std::int64_t start =
      saturated_count(indptr.values[static_cast<std::size_t>(stale ? i - 1 : i)]);
  const std::int64_t entry = start + token / page_size;
  const std::int64_t page = array_entry(indices, entry, indices_name);
  const std::int64_t in_page = token % page_size;
  const std::optional<KeyRow> key = key_at(pools, page, in_page, wrap);
  if (!key) {
    refuse_outside_pool(std::string(indices_name) + "[" + std::to_string(entry) + "]", page);
  }
  return cut_by_descriptor(*key, pools, page, in_page, mistake.fault);
}

}  // namespace attest
