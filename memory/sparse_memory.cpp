#include <sys/mman.h>

#include <algorithm>
#include <optional>
#include <string>

#include "memory/lazy_poison.hpp"
#include "memory/poison_file.hpp"
#include "memory/pool_memory.hpp"

namespace attest {
namespace {

constexpr std::int64_t os_page = 4096;
constexpr std::uintptr_t four_gib = std::uintptr_t{1} << 32;
/// Low 32 bits of a base: the second page of any pool lies past the next multiple of 4 GiB.
constexpr std::uintptr_t high_base = four_gib - os_page;
constexpr std::int64_t smallest_chunk = std::int64_t{2} << 20;
constexpr std::int64_t largest_chunk = std::int64_t{64} << 20;
// vm.max_map_count is 65,530 by default. A pool takes at most max_chunks + 2 * max_ranges mappings,
// so the K and V pools of two concurrent calls fit.
constexpr std::int64_t max_chunks = 4096;
constexpr std::size_t max_ranges = 4096;

std::int64_t round_up(std::int64_t value, std::int64_t step) {
  return (value + step - 1) / step * step;
}

/// `in_use` rounded to whole OS pages and merged, closest neighbours first while there are more
/// than max_ranges: what lies between merged ones becomes writable too (and damage() checks it).
std::vector<ByteRange> writable_ranges(const std::vector<ByteRange>& in_use, std::int64_t limit) {
  std::vector<ByteRange> ranges;
  for (const ByteRange& use : in_use) {
    const ByteRange pages = {use.begin / os_page * os_page, round_up(use.end, os_page)};
    if (!ranges.empty() && pages.begin <= ranges.back().end) {
      ranges.back().end = std::max(ranges.back().end, pages.end);
    } else {
      ranges.push_back(pages);
    }
  }
  if (ranges.size() > max_ranges) {
    std::vector<std::int64_t> gaps;
    for (std::size_t i = 1; i < ranges.size(); ++i) {
      gaps.push_back(ranges[i].begin - ranges[i - 1].end);
    }
    const std::size_t merged = ranges.size() - max_ranges;
    std::nth_element(gaps.begin(), gaps.begin() + static_cast<std::ptrdiff_t>(merged), gaps.end());
    const std::int64_t keep = gaps[merged];
    std::vector<ByteRange> fewer = {ranges.front()};
    for (std::size_t i = 1; i < ranges.size(); ++i) {
      if (ranges[i].begin - fewer.back().end > keep) {
        fewer.push_back(ranges[i]);
      } else {
        fewer.back().end = ranges[i].end;
      }
    }
    ranges = std::move(fewer);
  }
  if (!ranges.empty()) ranges.back().end = std::min(ranges.back().end, limit);
  return ranges;
}

class SparseMemory final : public KvMemory {
 public:
  SparseMemory(const PoolRequest& request, LargePool kind)
      : kind_(kind),
        before_(std::max(std::int64_t{4} << 30, static_cast<std::int64_t>(size_bytes(request.dtype))
                                                    << 31)),
        span_(round_up(request.span_bytes, os_page)),
        chunk_(kind == LargePool::lazy ? smallest_chunk : chunk_for(before_ + span_)),
        writable_(writable_ranges(request.in_use, request.span_bytes)) {
    // One chunk of unreadable address space stays behind the pool, and room to choose the base.
    reserved_ = before_ + span_ + chunk_ + static_cast<std::int64_t>(four_gib);
    void* const at = mmap(nullptr, static_cast<std::size_t>(reserved_), PROT_NONE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) {
      fail_pool("reserving " + std::to_string(reserved_) + " bytes of address space");
    }
    reservation_ = static_cast<std::byte*>(at);
    const auto lowest = reinterpret_cast<std::uintptr_t>(reservation_ + before_);
    base_ = reservation_ + before_ + ((high_base - lowest) & (four_gib - 1));
    try {
      map_all(request);
    } catch (...) {
      release();
      throw;
    }
  }
  ~SparseMemory() override { release(); }
  SparseMemory(const SparseMemory&) = delete;
  SparseMemory& operator=(const SparseMemory&) = delete;

  std::byte* base() const override { return base_; }
  std::int64_t before_bytes() const override { return before_; }
  std::int64_t after_bytes() const override { return 0; }
  bool sparse() const override { return true; }
  std::span<const ByteRange> writable() const override { return writable_; }
  std::vector<StrayRead> stray_reads() const override {
    return lazy_ ? lazy_->log() : std::vector<StrayRead>{};
  }

 private:
  static std::int64_t chunk_for(std::int64_t bytes) {
    std::int64_t chunk = smallest_chunk;
    while (chunk < largest_chunk && bytes / chunk > max_chunks) chunk *= 2;
    return chunk;
  }

  void map_all(const PoolRequest& request) {
    const int in_front = poison_file(request.dtype, request.poison, Region::before_base, chunk_);
    const int inside = poison_file(request.dtype, request.poison, Region::unreferenced, chunk_);
    for (std::int64_t at = -before_; at < span_ && kind_ == LargePool::eager; at += chunk_) {
      const std::int64_t end = std::min(at + chunk_, at < 0 ? at + chunk_ : span_);
      map(at < 0 ? in_front : inside, {at, end}, false);
    }
    // A private mapping of the same poison: pages become real when they are written, and whatever
    // of them is not written still holds the poison.
    for (const ByteRange& range : writable_) {
      for (std::int64_t at = range.begin; at < range.end;) {
        const std::int64_t end = std::min((at / chunk_ + 1) * chunk_, round_up(range.end, os_page));
        map(inside, {at, end}, true);
        at = end;
      }
    }
    if (kind_ == LargePool::lazy) {
      lazy_.emplace(base_, before_, span_, writable_, LazyPoison::Files{in_front, inside, chunk_});
    }
  }

  void map(int fd, const ByteRange& range, bool writable) {
    const std::int64_t in_chunk = ((range.begin % chunk_) + chunk_) % chunk_;
    void* const at =
        mmap(base() + range.begin, static_cast<std::size_t>(range.end - range.begin),
             writable ? PROT_READ | PROT_WRITE : PROT_READ,
             (writable ? MAP_PRIVATE | MAP_NORESERVE : MAP_SHARED) | MAP_FIXED, fd, in_chunk);
    if (at == MAP_FAILED) {
      fail_pool("mapping bytes [" + std::to_string(range.begin) + ", " + std::to_string(range.end) +
                ") of " + std::to_string(span_) + (writable ? " as memory" : " as poison"));
    }
  }

  void release() { munmap(reservation_, static_cast<std::size_t>(reserved_)); }

  LargePool kind_;
  std::int64_t before_;
  std::int64_t span_;
  std::int64_t chunk_;
  std::vector<ByteRange> writable_;
  std::int64_t reserved_ = 0;
  std::byte* reservation_ = nullptr;
  std::byte* base_ = nullptr;
  std::optional<LazyPoison> lazy_;
};

}  // namespace

std::unique_ptr<KvMemory> make_sparse_memory(const PoolRequest& request, LargePool kind) {
  return std::make_unique<SparseMemory>(request, kind);
}

}  // namespace attest
