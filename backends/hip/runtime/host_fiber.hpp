#pragma once

#include <sanitizer/common_interface_defs.h>

#include <boost/context/detail/fcontext.hpp>
#include <cstddef>
#include <vector>

// Null unless the program is linked with AddressSanitizer.
#pragma weak __sanitizer_start_switch_fiber
#pragma weak __sanitizer_finish_switch_fiber

namespace attest::hip::host {

/// Stacks for the fibers of one block, kept from block to block and from launch to launch. Each has
/// a page without access below it.
class FiberStacks {
 public:
  FiberStacks() = default;
  FiberStacks(const FiberStacks&) = delete;
  FiberStacks& operator=(const FiberStacks&) = delete;
  ~FiberStacks();

  struct Stack {
    std::byte* bottom = nullptr;
    std::size_t size = 0;
    std::byte* top() const { return bottom + size; }
  };
  /// Makes at least `count` stacks exist. \throws std::system_error naming mmap or mprotect.
  void reserve(std::size_t count);
  const Stack& operator[](std::size_t i) const { return stacks_[i]; }

 private:
  struct Region {
    void* base = nullptr;
    std::size_t bytes = 0;
  };
  std::vector<Region> regions_;
  std::vector<Stack> stacks_;
};

/// A place to continue at: a fiber, or the operating system's thread that runs the fibers.
struct Context {
  void* point = nullptr;                      ///< Boost's fcontext_t
  void (*entry)() = nullptr;                  ///< of a fiber that has not begun
  const FiberStacks::Stack* stack = nullptr;  ///< null: the thread's own
};

/// Prepares `context` to call `entry` on `stack` when it is first continued. `entry` does not
/// return; its last act is leave().
void prepare(Context& context, const FiberStacks::Stack& stack, void (*entry)());

/// Written by whoever jumps, read by whoever lands. Not on the stack, which AddressSanitizer may
/// have dropped by then.
struct Jump {
  Context* from = nullptr;  ///< null when that fiber is over
  Context* to = nullptr;
};
[[gnu::tls_model("initial-exec")]] constinit inline thread_local Jump last_jump;

/// Boost's jump_fcontext(), entered by a jump. A call would leave a return address in the CPU's
/// return predictor that no return ever takes, so that each return after the switch would be
/// mispredicted. Without it the predictor still holds the way back of the fiber that stopped, which
/// is the way of the next one too when both stopped at one place.
[[gnu::always_inline]] inline boost::context::detail::transfer_t jump(void* point) {
#if defined(__x86_64__)
  void* left = nullptr;
  void* received = nullptr;
  void* data = nullptr;
  asm volatile(
      "leaq -128(%%rsp), %%rsp\n\t"  // past the red zone
      "leaq 1f(%%rip), %%rax\n\t"
      "pushq %%rax\n\t"
      "jmp jump_fcontext@PLT\n"
      "1:\n\t"
      "leaq 128(%%rsp), %%rsp"
      : "=&a"(left), "=&d"(received), "+D"(point), "+S"(data)
      :
      : "rcx", "r8", "r9", "r10", "r11", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6",
        "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "cc",
        "memory");
  return {left, received};
#else
  return boost::context::detail::jump_fcontext(point, nullptr);
#endif
}

/// What AddressSanitizer must know around a switch; `active` unless it is not linked in.
struct SanitizerNotes {
  static bool active() { return &__sanitizer_start_switch_fiber != nullptr; }
  static void before(void** fake_stack, const Context& from, const Context& to);
  static void after(void* fake_stack);
};

/// Continues at `to` and comes back when something continues at `from`.
[[gnu::always_inline]] inline void switch_context(Context& from, Context& to) {
  last_jump = {&from, &to};
  void* fake_stack = nullptr;
  if (SanitizerNotes::active()) SanitizerNotes::before(&fake_stack, from, to);
  const boost::context::detail::transfer_t landed = jump(to.point);
  if (last_jump.from != nullptr) last_jump.from->point = landed.fctx;
  if (SanitizerNotes::active()) SanitizerNotes::after(fake_stack);
}

/// Continues at `to`; the fiber `from` that calls this is over.
[[noreturn]] void leave(const Context& from, Context& to);

}  // namespace attest::hip::host
