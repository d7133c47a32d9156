#pragma once

#include <string>
#include <system_error>
#include <thread>
#include <utility>

namespace attest {

/// The harness itself ran out of something (address space, descriptors, processes, threads): no
/// verdict on a kernel. what() = "<place and value>: <error>".
class ResourceError : public std::system_error {
 public:
  ResourceError(int error, std::string place)
      : std::system_error(error, std::generic_category(), place), place_(std::move(place)) {}
  /// What was asked for, without the error.
  const std::string& place() const { return place_; }

 private:
  std::string place_;
};

/// A thread that runs `work`, the `number`-th of `count` of `purpose`.
/// \throws ResourceError with these words
template <class Work>
std::jthread start_thread(std::size_t number, std::size_t count, const std::string& purpose,
                          Work&& work) {
  try {
    return std::jthread(std::forward<Work>(work));
  } catch (const std::system_error& error) {
    throw ResourceError(error.code().value(), "starting thread " + std::to_string(number) + " of " +
                                                  std::to_string(count) + " of " + purpose);
  }
}

}  // namespace attest
