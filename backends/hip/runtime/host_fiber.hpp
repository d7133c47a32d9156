#pragma once

#include <cstddef>
#include <vector>

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

/// Continues at `to` and comes back when something continues at `from`.
void switch_context(Context& from, Context& to);

/// Continues at `to`; the fiber `from` that calls this is over.
[[noreturn]] void leave(const Context& from, Context& to);

}  // namespace attest::hip::host
