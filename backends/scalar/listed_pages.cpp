#include "backends/scalar/listed_pages.hpp"

#include <algorithm>
#include <string>

#include "backends/scalar/table_walk.hpp"
#include "backends/scalar/wrong_lookup.hpp"

namespace attest {

std::int64_t ListedPages::pages(std::int64_t i) const {
  return saturated_count(array_entry(indptr, i + 1, "kv_indptr")) -
         saturated_count(array_entry(indptr, i, "kv_indptr"));
}

std::int64_t ListedPages::first_entry(std::int64_t i, Fault fault) const {
  if (fault == Fault::request_index_dropped) i = 0;
  if (fault != Fault::page_lists_at_a_fixed_stride) {
    return saturated_count(indptr.values[static_cast<std::size_t>(i)]);
  }
  std::int64_t longest = 0;
  for (std::int64_t r = 0; r + 1 < indptr.numel(); ++r) longest = std::max(longest, pages(r));
  return i * longest;
}

KeyRow ListedPages::key(const KvPools& pools, std::int64_t i, std::int64_t token,
                        const Mistake& mistake) const {
  const bool stale = mistake.fault == Fault::stale_page && token < stale_slots && i > 0;
  const TablePlace at = list_place(token, page_size, mistake.fault);
  const std::int64_t e = first_entry(stale ? i - 1 : i, mistake.fault) + at.column;
  if (mistake.fault == Fault::table_not_consulted) {
    return row_of(pools, e, at.column, token % page_size, mistake);
  }
  return row_of(pools, e, array_entry(indices, e, indices_name) + at.behind, token % page_size,
                mistake);
}

KeyRow ListedPages::entry(const KvPools& pools, std::int64_t e, std::int64_t in_page,
                          const Mistake& mistake) const {
  return row_of(pools, e, array_entry(indices, e, indices_name), in_page, mistake);
}

KeyRow ListedPages::row_of(const KvPools& pools, std::int64_t e, std::int64_t page,
                           std::int64_t in_page, const Mistake& mistake) const {
  const WrapModel wrap = wrap_of(mistake, indices.meta.dtype == Dtype::int32);
  if (mistake.fault == Fault::page_id_in_16_bits) page &= 0xffff;
  const std::optional<KeyRow> key = key_at(pools, page, in_page, wrap);
  if (!key) {
    refuse_outside_pool(std::string(indices_name) + "[" + std::to_string(e) + "]", page);
  }
  return cut_by_descriptor(*key, pools, page, in_page, mistake.fault);
}

}  // namespace attest
