#pragma once

#include <cstddef>
#include <functional>

namespace attest {

/// Runs `work` on `threads` threads at once, the caller's among them, and waits for all.
/// \throws what one of them threw.
void run_on_threads(std::size_t threads, const std::function<void()>& work);

/// `asked` threads, or one per core this process may use when 0.
std::size_t thread_count(int asked);

}  // namespace attest
