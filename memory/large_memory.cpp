#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <limits>
#include <new>
#include <system_error>
#include <utility>

#include "memory/pool_memory.hpp"
#include "memory/sanitizers.hpp"

namespace attest {
namespace {

std::int64_t number_in(const char* path) {
  std::ifstream file(path);
  std::int64_t number = 0;
  file >> number;
  return number;
}

std::int64_t available_memory() {
  std::ifstream file("/proc/meminfo");
  std::string key;
  for (std::int64_t kib = 0; file >> key >> kib; file.ignore(64, '\n')) {
    if (key == "MemAvailable:") return kib * 1024;
  }
  return 0;
}

/// Other memory than was asked for, and why.
class Instead final : public KvMemory {
 public:
  Instead(std::unique_ptr<KvMemory> memory, std::string note)
      : memory_(std::move(memory)), note_(std::move(note)) {}
  std::byte* base() const override { return memory_->base(); }
  std::int64_t before_bytes() const override { return memory_->before_bytes(); }
  std::int64_t after_bytes() const override { return memory_->after_bytes(); }
  bool sparse() const override { return memory_->sparse(); }
  std::span<const ByteRange> writable() const override { return memory_->writable(); }
  std::vector<StrayRead> stray_reads() const override { return memory_->stray_reads(); }
  std::string_view note() const override { return note_; }

 private:
  std::unique_ptr<KvMemory> memory_;
  std::string note_;
};

/// \throws std::system_error, for dense memory that does not fit too
std::unique_ptr<KvMemory> make(const PoolRequest& request, LargePool kind, bool asked_for) {
  if (kind != LargePool::dense) return make_sparse_memory(request, kind);
  const std::int64_t available = available_memory();
  // Whoever asks for dense memory has counted; a stand-in must leave room for the other pool.
  const std::int64_t most = asked_for ? available : available / 2;
  const auto refuse = [&] {
    throw std::system_error(ENOMEM, std::generic_category(),
                            "dense KV pool of " + std::to_string(request.span_bytes) +
                                " bytes, where " + std::to_string(most) + " may be taken");
  };
  if (request.span_bytes > most) refuse();
  try {
    return make_dense_memory(request);
  } catch (const std::bad_alloc&) {
    refuse();
  }
  return nullptr;
}

}  // namespace

std::string_view name(LargePool kind) {
  switch (kind) {
    case LargePool::lazy:
      return "lazy";
    case LargePool::eager:
      return "eager";
    case LargePool::dense:
      return "dense";
  }
  return "";
}

LargePool large_pool_wanted() {
  const char* const text = std::getenv("ATTEST_KV_MEMORY");
  const std::string_view word = text != nullptr ? text : "";
  // ThreadSanitizer delays signals until a call of its own.
  constexpr LargePool usual = with_thread_sanitizer ? LargePool::eager : LargePool::lazy;
  if (word.empty() || word == name(LargePool::lazy)) return usual;
  for (const LargePool kind : {LargePool::eager, LargePool::dense}) {
    if (word == name(kind)) return kind;
  }
  throw std::invalid_argument("ATTEST_KV_MEMORY=" + std::string(word) +
                              " is none of lazy, eager, dense");
}

std::unique_ptr<KvMemory> make_large_memory(const PoolRequest& request, LargePool wanted) {
  std::string why;
  for (int kind = static_cast<int>(wanted); kind <= static_cast<int>(LargePool::dense); ++kind) {
    const auto one = static_cast<LargePool>(kind);
    try {
      auto memory = make(request, one, one == wanted);
      if (one == wanted) return memory;
      return std::make_unique<Instead>(std::move(memory),
                                       std::string(name(one)) + " KV memory instead of " +
                                           std::string(name(wanted)) + ": " + why);
    } catch (const std::system_error& error) {
      why += (why.empty() ? "" : "; ") + std::string(name(one)) + ": " + error.what();
    }
  }
  throw PoolUnavailable("no KV pool of " + std::to_string(request.span_bytes) +
                        " bytes here: " + why);
}

MemoryLimits memory_limits() {
  MemoryLimits limits;
  limits.overcommit = number_in("/proc/sys/vm/overcommit_memory");
  limits.max_map_count = number_in("/proc/sys/vm/max_map_count");
  std::ifstream maps("/proc/self/maps");
  limits.mappings = std::count(std::istreambuf_iterator<char>(maps), {}, '\n');
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    limits.address_space = static_cast<std::int64_t>(
        std::min<rlim_t>(limit.rlim_cur, std::numeric_limits<std::int64_t>::max()));
  }
  limits.available_bytes = available_memory();
  return limits;
}

std::string likely_limit(const MemoryLimits& limits) {
  if (limits.address_space >= 0) {
    return "the address space is limited to " + std::to_string(limits.address_space) +
           " bytes; raise it with ulimit -v";
  }
  if (limits.mappings + 16 >= limits.max_map_count && limits.max_map_count > 0) {
    return std::to_string(limits.mappings) +
           " mappings of at most vm.max_map_count = " + std::to_string(limits.max_map_count);
  }
  if (limits.overcommit == 2) {
    return "vm.overcommit_memory = 2 counts address space as memory; 0 or 1 lets sparse pools be";
  }
  return std::to_string(limits.available_bytes) +
         " bytes of memory are available; a process has 2^47 bytes of addresses";
}

}  // namespace attest
