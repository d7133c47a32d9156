#include "backends/hip/runtime/emulator.hpp"

#include <cstdlib>
#include <fstream>
#include <iterator>

namespace attest::hip {
namespace {

constexpr std::string_view library = "librocjitsu.so";

/// Digits and dots behind "librocjitsu.so.", where a text names the library.
std::optional<Emulator> named_in(std::string_view text) {
  const std::size_t at = text.find(library);
  if (at == std::string_view::npos) return std::nullopt;
  std::string_view rest = text.substr(at + library.size());
  Emulator emulator;
  if (!rest.starts_with('.')) return emulator;
  rest.remove_prefix(1);
  emulator.version = rest.substr(0, rest.find_first_not_of("0123456789."));
  return emulator;
}

}  // namespace

std::string Emulator::label(std::string_view architecture) const {
  return std::string(architecture) + " (rocjitsu " +
         (version.empty() ? "of unknown version" : version) + ", emulated)";
}

std::optional<Emulator> emulator_in(std::string_view maps, std::string_view preload) {
  if (auto found = named_in(maps)) return found;
  return named_in(preload);
}

const std::optional<Emulator>& emulator_here() {
  static const std::optional<Emulator> here = [] {
    std::ifstream file("/proc/self/maps");
    const std::string maps(std::istreambuf_iterator<char>(file), {});
    const char* const preload = std::getenv("LD_PRELOAD");
    return emulator_in(maps, preload != nullptr ? preload : "");
  }();
  return here;
}

}  // namespace attest::hip
