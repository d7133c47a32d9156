#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <vector>

#include "contracts/address_interval.hpp"
#include "contracts/capped_product.hpp"

namespace attest::touching {

/// Far past every memory, and small enough that eight bytes each stay inside 63 bits.
inline constexpr std::int64_t farthest = std::int64_t{1} << 58;

inline std::int64_t times(std::int64_t a, std::int64_t b) { return capped_product(a, b, farthest); }
inline std::int64_t plus(std::int64_t a, std::int64_t b) {
  return std::clamp(a + b, -farthest, farthest);
}

/// Indices [first, last], both touched.
struct Indices {
  std::int64_t first = 0, last = -1;
};
inline Indices all_of(std::int64_t count) { return {0, count - 1}; }

/// The hull of what is touched of one operand.
class Touched {
 public:
  explicit Touched(const TensorMeta& meta) : meta_(meta) {}

  /// Every element whose index lies in the box, one range per dimension.
  void box(std::initializer_list<Indices> ranges) {
    std::int64_t low = 0;
    std::int64_t high = 0;
    std::size_t d = 0;
    for (const Indices& range : ranges) {
      if (range.last < range.first) return;
      const std::int64_t one = times(range.first, meta_.stride(d));
      const std::int64_t other = times(range.last, meta_.stride(d++));
      low = plus(low, std::min(one, other));
      high = plus(high, std::max(one, other));
    }
    first_ = std::min(first_, low);
    end_ = std::max(end_, plus(high, 1));
  }

  void add_to(std::vector<AddressInterval>& list, const char* operand) const {
    if (first_ >= end_) return;
    list.push_back({operand, static_cast<std::int64_t>(size_bytes(meta_.dtype)), first_, end_});
  }

 private:
  const TensorMeta& meta_;
  std::int64_t first_ = std::numeric_limits<std::int64_t>::max();
  std::int64_t end_ = std::numeric_limits<std::int64_t>::min();
};

inline std::int64_t entry(const IntArray& array, std::int64_t i, std::int64_t otherwise = 0) {
  const bool there = i >= 0 && i < static_cast<std::int64_t>(array.values.size());
  return there ? std::clamp(array.values[static_cast<std::size_t>(i)], -farthest, farthest)
               : otherwise;
}

inline void add_rows(std::vector<AddressInterval>& list, const char* operand,
                     const TensorMeta& meta, const Indices& rows) {
  Touched touched(meta);
  touched.box({rows, all_of(meta.size(1)), all_of(meta.size(2))});
  touched.add_to(list, operand);
}

inline void add_whole(std::vector<AddressInterval>& list, const char* operand,
                      const TensorMeta& meta) {
  Touched touched(meta);
  touched.box(
      {all_of(meta.size(0)), all_of(meta.size(1)), all_of(meta.size(2)), all_of(meta.size(3))});
  touched.add_to(list, operand);
}

/// Keys [first, length) of a request and where its row of the table begins.
struct Walk {
  std::int64_t first = 0, length = 0;
};

/// First key that a row of the request sees. `window`: keys a row sees; <= 0 = all.
inline std::int64_t first_seen(std::int64_t length, std::int64_t rows, std::int64_t window) {
  if (window <= 0) return 0;
  return std::max<std::int64_t>(0, plus(length, -rows) + 1 - window);
}

/// A paged or slot-wise K or V pool and the table that leads to it.
struct Pools {
  Touched k, v;
  const TensorMeta& k_meta;
  const TensorMeta& v_meta;

  void page(std::int64_t page, const Indices& slots) {
    k.box({{page, page}, slots, all_of(k_meta.size(2)), all_of(k_meta.size(3))});
    v.box({{page, page}, slots, all_of(v_meta.size(2)), all_of(v_meta.size(3))});
  }
  void slot(std::int64_t slot) {
    k.box({{slot, slot}, all_of(k_meta.size(1)), all_of(k_meta.size(2))});
    v.box({{slot, slot}, all_of(v_meta.size(1)), all_of(v_meta.size(2))});
  }
  /// The slots that entries `at` of the flat `table` name.
  void slots(const IntArray& table, const Indices& at) {
    const std::int64_t last = std::min(at.last, static_cast<std::int64_t>(table.values.size()) - 1);
    for (std::int64_t i = std::max<std::int64_t>(at.first, 0); i <= last; ++i) {
      slot(entry(table, i));
    }
  }
  /// Pages of keys `walk`; entries `start + page number` of the table, `page_size` keys each.
  void pages(const IntArray& table, std::int64_t start, const Walk& walk, std::int64_t page_size) {
    const auto cells = static_cast<std::int64_t>(table.values.size());
    for (std::int64_t at = walk.first / page_size; at * page_size < walk.length; ++at) {
      if (start + at < 0 || start + at >= cells) return;
      const std::int64_t from = std::max(walk.first - at * page_size, std::int64_t{0});
      const std::int64_t to = std::min(walk.length - at * page_size, page_size);
      page(entry(table, start + at), {from, to - 1});
    }
  }
};

/// Which elements of each operand a conforming kernel touches, from the call's metadata alone.
std::vector<AddressInterval> touched(const UnifiedCall& call);
std::vector<AddressInterval> touched(const ExtendCall& call);
std::vector<AddressInterval> touched(const DecodeCall& call);
std::vector<AddressInterval> touched(const MlaDecodeCall& call);
std::vector<AddressInterval> touched(const BatchPrefillCall& call);
std::vector<AddressInterval> touched(const PagedRaggedCall& call);
std::vector<AddressInterval> touched(const LegacyExtendCall& call);
std::vector<AddressInterval> touched(const VllmCpuCall& call);

}  // namespace attest::touching
