#pragma once

#include <string_view>
#include <type_traits>

namespace attest::hip {

/// Size of a grid in blocks or of a block in threads.
struct Extent {
  unsigned x = 1;
  unsigned y = 1;
  unsigned z = 1;
  bool operator==(const Extent&) const = default;
};

/// Where a launch goes: a cudaStream_t, a hipStream_t, or on the host a HostSettings (see
/// host_engine.hpp), where a launch returns when it is done. Null is the default of each.
struct Stream {
  void* handle = nullptr;
};

/// A kernel with its name. Kernels take one trivially copyable struct by value.
template <class Args>
struct Kernel {
  using Entry = void (*)(Args);
  Entry entry = nullptr;
  std::string_view name;  ///< "split_kernel<128>": for error messages
};

/// The `E` of the one template argument `E` in what a compiler prints for a function.
constexpr std::string_view argument_in(std::string_view printed) {
  const std::size_t equals = printed.find("= ");
  if (equals == std::string_view::npos) return printed;
  printed.remove_prefix(equals + 2);
  if (printed.starts_with('&')) printed.remove_prefix(1);
  const std::size_t semicolon = printed.find(';');  // g++ goes on with the return type
  printed = printed.substr(0, semicolon == std::string_view::npos ? printed.size() - 1 : semicolon);
  // Kernels live in an anonymous namespace, which each compiler writes its own way.
  const std::string_view unspecialised = printed.substr(0, printed.find('<'));
  const std::size_t scope = unspecialised.rfind("::");
  return scope == std::string_view::npos ? printed : printed.substr(scope + 2);
}

template <auto Entry>
constexpr std::string_view entry_name() {
  return argument_in(__PRETTY_FUNCTION__);
}

template <auto Entry, class Args>
constexpr Kernel<Args> kernel_of(void (*)(Args)) {
  static_assert(std::is_trivially_copyable_v<Args>, "a kernel's arguments are copied as bytes");
  static_assert(sizeof(Args) <= 4096, "CUDA takes at most 4 KiB of arguments");
  return {Entry, entry_name<Entry>()};
}

/// `kernel<split_kernel<128>>`: the kernel under its own name, ready for launch().
template <auto Entry>
inline constexpr auto kernel = kernel_of<Entry>(Entry);

}  // namespace attest::hip
