#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace attest::hip {

/// AMD's CPU emulator rocjitsu, which answers in a GPU's place where a program is started as
/// `rocjitsu --config C -- program`. What runs under it says something about the compiled code and
/// nothing about hardware, so it is an engine of its own.
struct Emulator {
  std::string version;  ///< "0.2.0", or empty where its file does not say
  bool operator==(const Emulator&) const = default;
  /// "gfx950 (rocjitsu 0.2.0, emulated)".
  std::string label(std::string_view architecture) const;
};

/// \param maps     text of /proc/self/maps: librocjitsu.so among the files of the process
/// \param preload  LD_PRELOAD, or empty
std::optional<Emulator> emulator_in(std::string_view maps, std::string_view preload);

/// Of this process, looked at once.
const std::optional<Emulator>& emulator_here();

}  // namespace attest::hip
