#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "backends/amx/emulation/tile_file.hpp"

namespace attest::amx {

/// How AMX instructions of this process are executed. The kernel's object code is the same in all.
enum class Engine {
  native,  ///< by the CPU
  patch,   ///< emulated; each site is replaced by a jump after its first SIGILL
  trap,    ///< emulated; every instruction raises SIGILL
  off,     ///< not at all: the backends are unavailable
};
std::string_view name(Engine engine);

/// What this machine gives, each with its own reason when it does not.
struct Support {
  bool cpuid = false;       ///< AMX-TILE, AMX-BF16 and AMX-INT8 in CPUID leaf 7
  bool xcr0 = false;        ///< the operating system saves tile state
  bool permission = false;  ///< arch_prctl(ARCH_REQ_XCOMP_PERM) granted it to this process
  bool fp16 = false;        ///< AMX-FP16
  bool native() const { return cpuid && xcr0 && permission; }
  std::string reason;  ///< "CPUID has no AMX-TILE"; empty when native
};

/// Asks CPUID, XGETBV and, when both say yes and `request` is set, the kernel for permission (which
/// then holds for the process and its children and cannot be given back).
Support probe(bool request);

/// Whether this process was granted tile data, now or by whoever started it.
bool has_permission();

/// The engine ATTEST_AMX asks for, by default native where it is possible, else patch.
struct Choice {
  Engine engine = Engine::off;
  std::string reason;  ///< one sentence for `attest doctor`
};
/// \param wish  value of ATTEST_AMX or nullptr. \throws std::invalid_argument on an unknown value.
Choice choose(const char* wish);

/// An AMX instruction that raised, with its place.
struct Raised {
  Exception exception = Exception::none;
  std::string_view mnemonic;
  const char* reason = "";
  std::uint64_t instruction = 0;  ///< its address
  std::uint64_t address = 0;      ///< of its memory operand, 0 without one
};
/// "#UD in tileloadd at 0x55..: colsb of the tile is not a multiple of 4".
std::string to_string(const Raised& raised);

/// Installs the SIGILL handler (and SIGTRAP for patch) once per process; later calls switch between
/// trap and patch. Signals that are not AMX's go to the handlers that were there before.
/// \throws std::system_error when a handler cannot be installed.
void install(Engine engine);
/// Restores every patched site and the previous handlers.
void uninstall();

/// Sites patched so far; for tests and the report.
int patched_sites();

/// Counters of this thread since its last reset.
Counters& thread_counters();
/// Tile state of this thread, as the emulation holds it.
TileFile& thread_tiles();

/// Runs `body` on this thread; an emulated instruction that raises ends it and is returned. Objects
/// that body constructed are not destroyed then. Without a guard a raise is printed and fatal.
std::optional<Raised> catch_raised(void (*body)(void*), void* argument);
template <class Body>
std::optional<Raised> catch_raised(Body&& body) {
  using Plain = std::remove_reference_t<Body>;
  return catch_raised([](void* self) { (*static_cast<Plain*>(self))(); }, &body);
}

}  // namespace attest::amx
