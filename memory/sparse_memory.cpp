#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <system_error>
#include <tuple>

#include "memory/pool_memory.hpp"

namespace attest {
namespace {

constexpr std::int64_t os_page = 4096;
constexpr std::int64_t smallest_chunk = std::int64_t{2} << 20;
constexpr std::int64_t largest_chunk = std::int64_t{64} << 20;
// vm.max_map_count is 65,530 by default. A pool takes at most max_chunks + 2 * max_ranges mappings,
// so the K and V pools of two concurrent calls fit.
constexpr std::int64_t max_chunks = 4096;
constexpr std::size_t max_ranges = 4096;

std::int64_t round_up(std::int64_t value, std::int64_t step) {
  return (value + step - 1) / step * step;
}

[[noreturn]] void fail(const std::string& what) {
  const int error = errno;
  const char* const symbol = strerrorname_np(error);
  throw std::system_error(error, std::generic_category(),
                          "sparse KV pool: " + what + ": " + (symbol ? symbol : "?"));
}

/// A memory file of `chunk` bytes of poison. Kept open and shared by all pools of the process, so
/// only the first of a kind pays for the filling.
int poison_file(Dtype dtype, Poison poison, Region region, std::int64_t chunk) {
  static std::mutex mutex;
  static std::map<std::tuple<std::uint32_t, std::size_t, std::int64_t>, int> files;
  const std::uint32_t bits = poison_bits(dtype, poison, region);
  const std::lock_guard lock(mutex);
  const auto [at, fresh] = files.try_emplace({bits, size_bytes(dtype), chunk}, -1);
  if (at->second >= 0) return at->second;
  const int fd = memfd_create("attest-poison", MFD_CLOEXEC);
  if (fd < 0) fail("memfd_create of the poison");
  std::array<std::byte, 65536> block;
  fill_poison(block, dtype, poison, region);
  for (std::int64_t done = 0; done < chunk;) {
    const ssize_t written = write(fd, block.data(), block.size());
    if (written <= 0) {
      const int error = errno;
      close(fd);
      errno = error;
      fail("writing " + std::to_string(chunk) + " bytes of poison");
    }
    done += written;
  }
  return at->second = fd;
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

class SparseMemory final : public PoolMemory {
 public:
  explicit SparseMemory(const PoolRequest& request)
      : before_(std::max(std::int64_t{4} << 30, static_cast<std::int64_t>(size_bytes(request.dtype))
                                                    << 31)),
        span_(round_up(request.span_bytes, os_page)),
        chunk_(chunk_for(before_ + span_)),
        writable_(writable_ranges(request.in_use, request.span_bytes)) {
    // One chunk of unreadable address space stays behind the pool.
    reserved_ = before_ + span_ + chunk_;
    void* const at = mmap(nullptr, static_cast<std::size_t>(reserved_), PROT_NONE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) {
      fail("reserving " + std::to_string(reserved_) + " bytes of address space");
    }
    reservation_ = static_cast<std::byte*>(at);
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

  std::byte* base() const override { return reservation_ + before_; }
  std::int64_t before_bytes() const override { return before_; }
  std::int64_t after_bytes() const override { return 0; }
  bool sparse() const override { return true; }
  std::span<const ByteRange> writable() const override { return writable_; }

 private:
  static std::int64_t chunk_for(std::int64_t bytes) {
    std::int64_t chunk = smallest_chunk;
    while (chunk < largest_chunk && bytes / chunk > max_chunks) chunk *= 2;
    return chunk;
  }

  void map_all(const PoolRequest& request) {
    const int in_front = poison_file(request.dtype, request.poison, Region::before_base, chunk_);
    const int inside = poison_file(request.dtype, request.poison, Region::unreferenced, chunk_);
    for (std::int64_t at = -before_; at < 0; at += chunk_) map(in_front, {at, at + chunk_}, false);
    for (std::int64_t at = 0; at < span_; at += chunk_) {
      map(inside, {at, std::min(at + chunk_, span_)}, false);
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
  }

  void map(int fd, const ByteRange& range, bool writable) {
    const std::int64_t in_chunk = ((range.begin % chunk_) + chunk_) % chunk_;
    void* const at =
        mmap(base() + range.begin, static_cast<std::size_t>(range.end - range.begin),
             writable ? PROT_READ | PROT_WRITE : PROT_READ,
             (writable ? MAP_PRIVATE | MAP_NORESERVE : MAP_SHARED) | MAP_FIXED, fd, in_chunk);
    if (at == MAP_FAILED) {
      fail("mapping bytes [" + std::to_string(range.begin) + ", " + std::to_string(range.end) +
           ") of " + std::to_string(span_) + (writable ? " as memory" : " as poison") +
           " (vm.max_map_count limits mappings)");
    }
  }

  void release() { munmap(reservation_, static_cast<std::size_t>(reserved_)); }

  std::int64_t before_;
  std::int64_t span_;
  std::int64_t chunk_;
  std::vector<ByteRange> writable_;
  std::int64_t reserved_ = 0;
  std::byte* reservation_ = nullptr;
};

}  // namespace

std::unique_ptr<PoolMemory> make_sparse_memory(const PoolRequest& request) {
  return std::make_unique<SparseMemory>(request);
}

}  // namespace attest
