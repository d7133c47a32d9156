#include "reference/parallel.hpp"

#include <algorithm>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "contracts/resource_error.hpp"

namespace attest {

void run_on_threads(std::size_t threads, const std::function<void()>& work) {
  std::exception_ptr failure;
  std::mutex mutex;
  const auto guarded = [&] {
    try {
      work();
    } catch (...) {
      const std::scoped_lock lock(mutex);
      failure = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> others;
    others.reserve(threads);
    for (std::size_t t = 1; t < threads; ++t) {
      others.push_back(start_thread(t + 1, threads, "the reference", guarded));
    }
    guarded();
  }
  if (failure) std::rethrow_exception(failure);
}

std::size_t thread_count(int asked) {
  if (asked > 0) return static_cast<std::size_t>(asked);
  return std::max(1U, std::thread::hardware_concurrency());
}

}  // namespace attest
