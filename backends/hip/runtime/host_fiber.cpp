#include "backends/hip/runtime/host_fiber.hpp"

#include <sys/mman.h>

#include <boost/context/detail/fcontext.hpp>
#include <cerrno>
#include <cstdlib>
#include <string>

#include "contracts/resource_error.hpp"

namespace attest::hip::host {
namespace {

namespace boost_context = boost::context::detail;

constexpr std::size_t page = 4096;
// A signal frame with AVX-512 state needs 3.4 KiB, one with AMX state some 11 KiB; unoptimised and
// sanitized kernels have large frames. Untouched pages cost nothing.
constexpr std::size_t stack_bytes = std::size_t{128} << 10;
constexpr std::size_t stride = stack_bytes + page;

/// Bounds of the thread's own stack, as AddressSanitizer told when the first fiber was entered.
struct ThreadStack {
  const void* bottom = nullptr;
  std::size_t size = 0;
};
thread_local ThreadStack thread_stack;
thread_local bool came_from_thread = false;

[[noreturn]] void throw_errno(const char* call, std::size_t bytes) {
  throw ResourceError(
      errno, std::string(call) + " of " + std::to_string(bytes) + " bytes for fiber stacks");
}

[[noreturn]] void start(boost_context::transfer_t landed) {
  if (last_jump.from != nullptr) last_jump.from->point = landed.fctx;
  if (SanitizerNotes::active()) SanitizerNotes::after(nullptr);
  last_jump.to->entry();
  std::abort();  // an entry ends with leave()
}

}  // namespace

FiberStacks::~FiberStacks() {
  for (const Region& region : regions_) munmap(region.base, region.bytes);
}

void FiberStacks::reserve(std::size_t count) {
  if (count <= stacks_.size()) return;
  const std::size_t more = count - stacks_.size();
  const std::size_t bytes = more * stride;
  void* base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (base == MAP_FAILED) throw_errno("mmap", bytes);
  regions_.push_back({base, bytes});
  for (std::size_t i = 0; i < more; ++i) {
    std::byte* guard = static_cast<std::byte*>(base) + i * stride;
    if (mprotect(guard, page, PROT_NONE) != 0) throw_errno("mprotect", page);
    // Tops of stacks at one distance would share a few lines of the cache; so they are staggered.
    const std::size_t colour = (stacks_.size() % 31) * 128;
    stacks_.push_back({guard + page, stack_bytes - colour});
  }
}

void prepare(Context& context, const FiberStacks::Stack& stack, void (*entry)()) {
  context = {boost_context::make_fcontext(stack.top(), stack.size, start), entry, &stack};
}

void leave(const Context& from, Context& to) {
  last_jump = {nullptr, &to};
  if (SanitizerNotes::active()) SanitizerNotes::before(nullptr, from, to);
  boost_context::jump_fcontext(to.point, nullptr);
  std::abort();
}

void SanitizerNotes::before(void** fake_stack, const Context& from, const Context& to) {
  came_from_thread = from.stack == nullptr;
  const void* bottom = to.stack != nullptr ? to.stack->bottom : thread_stack.bottom;
  const std::size_t size = to.stack != nullptr ? to.stack->size : thread_stack.size;
  __sanitizer_start_switch_fiber(fake_stack, bottom, size);
}

void SanitizerNotes::after(void* fake_stack) {
  ThreadStack previous;
  __sanitizer_finish_switch_fiber(fake_stack, &previous.bottom, &previous.size);
  if (came_from_thread) thread_stack = previous;
}

}  // namespace attest::hip::host
