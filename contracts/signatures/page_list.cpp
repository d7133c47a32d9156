#include "contracts/signatures/page_list.hpp"

#include <algorithm>

#include "contracts/signatures/query_rows.hpp"

namespace attest {

void list_every_slot(const Problem& problem, const SlotMap& slots, IntArray& indptr,
                     IntArray& indices, IntArray& last_page_lens) {
  const std::size_t batch = problem.requests.size();
  std::vector<std::int64_t> offsets{0};
  std::vector<std::int64_t> listed;
  for (std::size_t i = 0; i < batch; ++i) {
    for (std::int64_t t = 0; t < problem.requests[i].kv_len(); ++t) {
      listed.push_back(slots.slot(i, t));
    }
    offsets.push_back(static_cast<std::int64_t>(listed.size()));
  }
  indptr = int_array(Dtype::int32, std::move(offsets));
  indices = int_array(Dtype::int32, std::move(listed));
  last_page_lens = int_array(Dtype::int32, std::vector<std::int64_t>(batch, 1));
}

std::int64_t PageList::length(std::size_t i) const {
  const std::int64_t pages = saturated(indptr.values[i + 1]) - saturated(indptr.values[i]);
  if (page_size == 1) return pages;
  if (pages <= 0 || last_page_lens == nullptr || i >= last_page_lens->values.size()) return 0;
  std::int64_t length = 0;
  if (__builtin_mul_overflow(pages - 1, page_size, &length)) return largest_count;
  return saturated(saturated(length) + saturated(last_page_lens->values[i]));
}

void PageList::read(std::size_t i, std::int64_t last, bool usable, RowKeys& keys) const {
  const std::int64_t start = saturated(indptr.values[i]);
  const auto entries = static_cast<std::int64_t>(indices.values.size());
  usable = usable && indices.recorded && start >= 0 && page_size >= 1 && page_size <= largest_count;
  while (usable && keys.next_token() < last) {
    const std::int64_t at = start + keys.next_token() / page_size;
    if (at >= entries) break;
    const std::int64_t page = indices.values[static_cast<std::size_t>(at)];
    keys.read_page(page, num_pages, page_size, last);
  }
  keys.read_outside(last - keys.next_token());
}

}  // namespace attest
