#include "backends/amx/emulation/engine.hpp"

#include <asm/prctl.h>
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <sstream>
#include <stdexcept>

namespace attest::amx {
namespace {

constexpr std::array<std::string_view, 4> engine_names = {"native", "patch", "trap", "off"};

// <asm/prctl.h> of older kernels lacks it.
constexpr int get_permission = 0x1022;      // ARCH_GET_XCOMP_PERM
constexpr int request_permission = 0x1023;  // ARCH_REQ_XCOMP_PERM
constexpr int tile_data_feature = 18;

std::uint64_t read_xcr0() {
  std::uint32_t low = 0;
  std::uint32_t high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (std::uint64_t{high} << 32) | low;
}

}  // namespace

std::string_view name(Engine engine) { return engine_names[static_cast<std::size_t>(engine)]; }

Support probe(bool request) {
  Support support;
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  const bool leaf7 = __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0;
  const bool bf16 = leaf7 && (d & (1U << 22)) != 0;
  const bool tile = leaf7 && (d & (1U << 24)) != 0;
  const bool int8 = leaf7 && (d & (1U << 25)) != 0;
  support.cpuid = bf16 && tile && int8;
  if (!support.cpuid) {
    support.reason = !tile   ? "CPUID has no AMX-TILE"
                     : !bf16 ? "CPUID has no AMX-BF16"
                             : "CPUID has no AMX-INT8";
    return support;
  }
  support.fp16 = __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a & (1U << 21)) != 0;
  const bool osxsave = __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & (1U << 27)) != 0;
  support.xcr0 = osxsave && (read_xcr0() & (3ULL << 17)) == (3ULL << 17);
  if (!support.xcr0) {
    support.reason = "the operating system does not enable tile state in XCR0";
    return support;
  }
  if (!request) {
    support.reason = "permission for tile data was not asked for";
    return support;
  }
  support.permission = syscall(SYS_arch_prctl, request_permission, tile_data_feature) == 0;
  if (!support.permission) {
    support.reason =
        std::string("arch_prctl(ARCH_REQ_XCOMP_PERM, 18) failed: ") + std::strerror(errno);
  }
  return support;
}

bool has_permission() {
  std::uint64_t features = 0;
  if (syscall(SYS_arch_prctl, get_permission, &features) != 0) return false;
  return (features & (1ULL << tile_data_feature)) != 0;
}

Choice choose(const char* wish) {
  const std::string_view text = wish == nullptr ? "" : wish;
  if (text == "off") return {Engine::off, "ATTEST_AMX=off"};
  if (text == "trap" || text == "patch") {
    return {text == "trap" ? Engine::trap : Engine::patch,
            "emulated because ATTEST_AMX=" + std::string(text)};
  }
  if (!text.empty() && text != "native") {
    throw std::invalid_argument("ATTEST_AMX=" + std::string(text) +
                                ": must be native, patch, trap or off");
  }
  const Support support = probe(true);
  if (support.native()) return {Engine::native, "CPUID, XCR0 and the kernel's permission allow it"};
  if (text == "native") return {Engine::off, "ATTEST_AMX=native, but " + support.reason};
  return {Engine::patch, "emulated because " + support.reason};
}

std::string to_string(const Raised& raised) {
  std::ostringstream os;
  os << (raised.exception == Exception::gp ? "#GP" : "#UD") << " in " << raised.mnemonic << " at 0x"
     << std::hex << raised.instruction;
  if (raised.address != 0) os << " (operand 0x" << raised.address << ')';
  os << ": " << raised.reason;
  return os.str();
}

}  // namespace attest::amx
