#include "memory/lazy_poison.hpp"

#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <mutex>

#include "memory/poison_file.hpp"

namespace attest {

/// Which addresses belong to which pool. Fixed storage, since a signal handler reads it; ranges
/// stand beside the pointers, so that only the pool that was hit, which is alive, is looked into.
struct FaultRegistry {
  struct Slot {
    std::atomic<std::uintptr_t> begin{0}, end{0};
    std::atomic<LazyPoison*> pool{nullptr};
  };
  static constexpr std::size_t most_pools = 1024;
  static std::array<Slot, most_pools> slots;
  static std::mutex mutex;
  static struct sigaction previous;

  static std::size_t add(LazyPoison& pool);
  static void remove(std::size_t slot);
  static void install();
  static void on_fault(int signal_number, siginfo_t* info, void* context);
  static bool handle(const siginfo_t& info, const ucontext_t& context);
};

std::array<FaultRegistry::Slot, FaultRegistry::most_pools> FaultRegistry::slots;
std::mutex FaultRegistry::mutex;
struct sigaction FaultRegistry::previous;

/// \pre mutex held
void FaultRegistry::install() {
  static bool installed = false;
  struct sigaction now{};
  sigaction(SIGSEGV, nullptr, &now);
  const bool ours = (now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == &on_fault;
  if (ours) return;
  if (installed) {
    // Taking it back could make two handlers call one another for ever.
    errno = EBUSY;
    fail_pool("the SIGSEGV handler was replaced by somebody else's");
  }
  struct sigaction action{};
  action.sa_sigaction = &on_fault;
  action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
  if (sigaction(SIGSEGV, &action, &previous) != 0) fail_pool("sigaction(SIGSEGV)");
  installed = true;
}

std::size_t FaultRegistry::add(LazyPoison& pool) {
  const std::lock_guard lock(mutex);
  install();
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (slots[i].pool.load() != nullptr) continue;
    slots[i].pool = &pool;
    slots[i].end = reinterpret_cast<std::uintptr_t>(pool.base_ + pool.span_);
    slots[i].begin = reinterpret_cast<std::uintptr_t>(pool.base_ - pool.before_);
    return i;
  }
  errno = EMFILE;
  fail_pool("more than " + std::to_string(most_pools) + " lazy pools at a time");
}

void FaultRegistry::remove(std::size_t slot) {
  const std::lock_guard lock(mutex);
  slots[slot].begin = 0;
  slots[slot].end = 0;
  slots[slot].pool = nullptr;
}

bool FaultRegistry::handle(const siginfo_t& info, const ucontext_t& context) {
  constexpr greg_t store_bit = 2;  // of the page fault's error code
  const auto address = reinterpret_cast<std::uintptr_t>(info.si_addr);
  for (const Slot& slot : slots) {
    const std::uintptr_t begin = slot.begin.load();
    if (begin == 0 || address < begin || address >= slot.end.load()) continue;
    LazyPoison& pool = *slot.pool.load();
    const std::int64_t offset = static_cast<std::byte*>(info.si_addr) - pool.base_;
    const bool store = (context.uc_mcontext.gregs[REG_ERR] & store_bit) != 0;
    const auto at = static_cast<std::uint64_t>(context.uc_mcontext.gregs[REG_RIP]);
    if (!store && pool.map_at(offset, at)) return true;
    pool.complain(offset, store);
    return false;
  }
  return false;
}

void FaultRegistry::on_fault(int signal_number, siginfo_t* info, void* context) {
  const int error = errno;
  const bool handled = handle(*info, *static_cast<const ucontext_t*>(context));
  errno = error;
  if (handled) return;
  if ((previous.sa_flags & SA_SIGINFO) != 0) {
    previous.sa_sigaction(signal_number, info, context);
  } else if (previous.sa_handler == SIG_DFL || previous.sa_handler == SIG_IGN) {
    // The instruction runs again, into the end of the process.
    std::signal(SIGSEGV, SIG_DFL);
  } else {
    previous.sa_handler(signal_number);
  }
}

LazyPoison::LazyPoison(std::byte* base, std::int64_t before, std::int64_t span,
                       std::span<const ByteRange> writable, Files files)
    : base_(base), before_(before), span_(span), writable_(writable), files_(files) {
  slot_ = FaultRegistry::add(*this);
}

LazyPoison::~LazyPoison() { FaultRegistry::remove(slot_); }

bool LazyPoison::map_at(std::int64_t offset, std::uint64_t instruction) {
  const std::int64_t begin = (offset >= 0 ? offset : offset - stretch + 1) / stretch * stretch;
  ByteRange range{begin, std::min(begin + stretch, span_)};
  const auto* const next =
      std::upper_bound(writable_.data(), writable_.data() + writable_.size(), offset,
                       [](std::int64_t at, const ByteRange& w) { return at < w.begin; });
  constexpr std::int64_t os_page = 4096;
  if (next != writable_.data() + writable_.size()) range.end = std::min(range.end, next->begin);
  if (next != writable_.data()) {
    const std::int64_t used = ((next - 1)->end + os_page - 1) / os_page * os_page;
    range.begin = std::max(range.begin, used);
  }
  if (offset < range.begin || offset >= range.end) return false;
  const std::int64_t in_file = ((range.begin % files_.bytes) + files_.bytes) % files_.bytes;
  const int fd = offset < 0 ? files_.before_base : files_.unreferenced;
  void* const at = mmap(base_ + range.begin, static_cast<std::size_t>(range.end - range.begin),
                        PROT_READ, MAP_SHARED | MAP_FIXED, fd, in_file);
  if (at == MAP_FAILED) return false;
  const std::size_t n = faults_.fetch_add(1);
  if (n < entries_.size()) entries_[n] = {offset, instruction};
  return true;
}

void LazyPoison::complain(std::int64_t offset, bool store) const {
  // Fixed storage and write(): the process may be in any state.
  std::array<char, 160> line{};
  const bool past = offset >= span_;
  const int size = std::snprintf(line.data(), line.size(),
                                 "\nattest: %s at %lld bytes from a KV pool's base (%s)\n",
                                 store ? "store" : "read", static_cast<long long>(offset),
                                 offset < 0 ? "before base"
                                 : past     ? "past the end"
                                            : "not a page in use");
  if (size <= 0) return;
  const auto count = std::min(static_cast<std::size_t>(size), line.size() - 1);
  [[maybe_unused]] const auto ignored = ::write(STDERR_FILENO, line.data(), count);
}

std::vector<StrayRead> LazyPoison::log() const {
  std::vector<StrayRead> reads;
  const std::size_t count = std::min(faults_.load(), entries_.size());
  for (std::size_t i = 0; i < count; ++i) {
    const Entry& entry = entries_[i];
    reads.push_back({PoolHalf::k, entry.offset,
                     entry.offset < 0 ? Region::before_base : Region::unreferenced,
                     entry.instruction});
  }
  return reads;
}

}  // namespace attest
