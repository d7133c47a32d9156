#include "contracts/signatures/page_list.hpp"

#include <algorithm>

#include "contracts/signatures/query_rows.hpp"

namespace attest {

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
    const std::int64_t offset = keys.next_token() % page_size;
    if (at >= entries) break;
    const std::int64_t count = std::min(page_size - offset, last - keys.next_token());
    const std::int64_t page = indices.values[static_cast<std::size_t>(at)];
    std::int64_t slot = 0;
    const bool inside = page >= 0 && page < num_pages &&
                        !__builtin_mul_overflow(page, page_size, &slot) && slot < largest_count;
    if (inside) {
      keys.read(slot + offset, count);
    } else {
      keys.read_outside(count);
    }
  }
  keys.read_outside(last - keys.next_token());
}

}  // namespace attest
