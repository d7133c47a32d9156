// The SIGILL side of the emulation, and what both sides share: per-thread tiles, guards, raising.

#include <immintrin.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <asm/prctl.h>
#include <cpuid.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <system_error>

#include "backends/amx/emulation/decoder.hpp"
#include "backends/amx/emulation/engine.hpp"
#include "backends/amx/emulation/patch.hpp"

namespace attest::amx {
namespace {

/// Initial-exec: the handler must not allocate, and the default model may on first use.
struct ThreadState {
  TileFile tiles;
  Counters counters;
  sigjmp_buf* guard = nullptr;
  Raised raised;
};
__attribute__((tls_model("initial-exec"))) thread_local ThreadState state;

std::atomic<Engine> installed{Engine::off};
struct sigaction previous_ill;
struct sigaction previous_trap;
/// On a CPU that has AMX, ldtilecfg runs natively even without permission (measured), so the
/// emulation must pick up the configuration from the CPU.
bool config_runs_natively = false;
std::size_t tile_config_offset = 0;  ///< in the standard XSAVE format, CPUID leaf 0xd subleaf 17

/// gregs index of hardware register number n.
constexpr int greg_of[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                             REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                             REG_R12, REG_R13, REG_R14, REG_R15};

std::uint64_t segment_base(int which) {
  std::uint64_t base = 0;
  syscall(SYS_arch_prctl, which, &base);
  return base;
}

Registers registers_of(const ucontext_t& context, const Instruction& instruction) {
  Registers registers;
  for (std::size_t n = 0; n < 16; ++n) {
    registers.general[n] = static_cast<std::uint64_t>(context.uc_mcontext.gregs[greg_of[n]]);
  }
  registers.rip = static_cast<std::uint64_t>(context.uc_mcontext.gregs[REG_RIP]);
  if (instruction.segment == 4) registers.fs_base = segment_base(ARCH_GET_FS);
  if (instruction.segment == 5) registers.gs_base = segment_base(ARCH_GET_GS);
  return registers;
}

/// Adopts a configuration that the CPU took itself. A second ldtilecfg of equal bytes goes
/// unnoticed; it would only zero the tiles, which our kernels do explicitly.
void adopt(const TileConfig& native) {
  TileConfig ours;
  store_config(state.tiles, ours);
  ours.start_row = native.start_row;
  if (std::memcmp(&native, &ours, sizeof ours) != 0) load_config(state.tiles, native);
}

/// The configuration when the signal was raised: inside a handler the CPU's own is reset, so it
/// must come from the XSAVE image in the signal frame (component 17, standard format).
TileConfig config_in_frame(const ucontext_t& context) {
  constexpr std::size_t magic_offset = 464;
  constexpr std::uint32_t magic = 0x46505853;  // FP_XSTATE_MAGIC1
  constexpr std::size_t header_offset = 512;
  constexpr std::uint64_t tile_config_bit = 1ULL << 17;
  TileConfig config;
  const auto* const image = reinterpret_cast<const std::byte*>(context.uc_mcontext.fpregs);
  if (image == nullptr) return config;
  std::uint32_t found = 0;
  std::uint64_t present = 0;
  std::memcpy(&found, image + magic_offset, sizeof found);
  std::memcpy(&present, image + header_offset, sizeof present);
  if (found == magic && (present & tile_config_bit) != 0) {
    std::memcpy(&config, image + tile_config_offset, sizeof config);
  }
  return config;
}

[[noreturn]] void raise_fault(const Instruction& instruction, const Registers& registers,
                              const Fault& fault) {
  const bool memory = instruction.op == Op::tileload || instruction.op == Op::tilestore ||
                      instruction.op == Op::ldtilecfg;
  state.raised = {fault.exception, instruction.mnemonic, fault.reason, registers.rip,
                  memory ? address_of(instruction, registers) : 0};
  if (state.guard != nullptr) siglongjmp(*state.guard, 1);
  const std::string text = "attest: " + to_string(state.raised) + "\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
  abort();
}

void run_emulated(const Instruction& instruction, const Registers& registers) {
  const Fault fault = execute(instruction, registers, state.tiles, state.counters);
  if (fault) raise_fault(instruction, registers, fault);
}

/// Hands a signal that is not ours to whoever had it before.
void chain(const struct sigaction& previous, int number, siginfo_t* info, void* context) {
  if ((previous.sa_flags & SA_SIGINFO) != 0 && previous.sa_sigaction != nullptr) {
    previous.sa_sigaction(number, info, context);
  } else if (previous.sa_handler == SIG_IGN) {
    return;
  } else if (previous.sa_handler != SIG_DFL) {
    previous.sa_handler(number);
  } else {
    // Returning re-executes the instruction, now with the default action.
    signal(number, SIG_DFL);
  }
}

void on_sigill(int number, siginfo_t* info, void* raw) {
  const int saved_errno = errno;
  auto& context = *static_cast<ucontext_t*>(raw);
  const auto rip = static_cast<std::uint64_t>(context.uc_mcontext.gregs[REG_RIP]);
  const auto instruction = decode(reinterpret_cast<const std::uint8_t*>(rip));
  if (!instruction) {
    // Another thread may have patched the site between the fault and here.
    const std::uint8_t first = *reinterpret_cast<const volatile std::uint8_t*>(rip);
    if ((first == 0xe9 || first == 0xcc) && find_site(rip) != nullptr) return;
    chain(previous_ill, number, info, raw);
    return;
  }
  if (config_runs_natively) adopt(config_in_frame(context));
  run_emulated(*instruction, registers_of(context, *instruction));
  context.uc_mcontext.gregs[REG_RIP] += instruction->length;
  if (installed.load(std::memory_order_relaxed) == Engine::patch) patch_site(rip, *instruction);
  errno = saved_errno;
}

/// A thread that ran into a site while it was being patched stands behind the int3.
void on_sigtrap(int number, siginfo_t* info, void* raw) {
  auto& context = *static_cast<ucontext_t*>(raw);
  const auto rip = static_cast<std::uint64_t>(context.uc_mcontext.gregs[REG_RIP]) - 1;
  const Site* site = find_site(rip);
  if (site == nullptr) {
    chain(previous_trap, number, info, raw);
    return;
  }
  Registers registers = registers_of(context, site->instruction);
  registers.rip = rip;
  if (config_runs_natively) adopt(config_in_frame(context));
  run_emulated(site->instruction, registers);
  context.uc_mcontext.gregs[REG_RIP] =
      static_cast<greg_t>(rip) + static_cast<greg_t>(site->instruction.length);
}

void install_handler(int number, void (*handler)(int, siginfo_t*, void*),
                     struct sigaction* previous) {
  struct sigaction action{};
  action.sa_sigaction = handler;
  // NODEFER: a tile load may fault into another handler, and siglongjmp must leave nothing blocked.
  action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_RESTART;
  sigemptyset(&action.sa_mask);
  if (sigaction(number, &action, previous) != 0) {
    throw std::system_error(errno, std::generic_category(),
                            "sigaction(" + std::to_string(number) + ")");
  }
}

}  // namespace

void run_instruction(const Instruction& instruction, const Registers& registers) {
  if (config_runs_natively && instruction.op != Op::ldtilecfg) {
    TileConfig native;
    __asm__ volatile("sttilecfg %0" : "=m"(native));
    adopt(native);
  }
  run_emulated(instruction, registers);
}

void install(Engine engine) {
  if (engine != Engine::trap && engine != Engine::patch) return;
  if (installed.load() == Engine::off) {
    const Support support = probe(false);
    config_runs_natively = support.cpuid && support.xcr0;
    unsigned size = 0;
    unsigned offset = 0;
    unsigned c = 0;
    unsigned d = 0;
    if (__get_cpuid_count(0xd, 17, &size, &offset, &c, &d) != 0) tile_config_offset = offset;
    install_handler(SIGILL, on_sigill, &previous_ill);
    install_handler(SIGTRAP, on_sigtrap, &previous_trap);
  }
  if (engine == Engine::trap) restore_sites();
  installed.store(engine);
}

void uninstall() {
  if (installed.exchange(Engine::off) == Engine::off) return;
  restore_sites();
  sigaction(SIGILL, &previous_ill, nullptr);
  sigaction(SIGTRAP, &previous_trap, nullptr);
}

int patched_sites() { return site_count(); }

Counters& thread_counters() { return state.counters; }
TileFile& thread_tiles() { return state.tiles; }

std::optional<Raised> catch_raised(void (*body)(void*), void* argument) {
  sigjmp_buf* const outer = state.guard;
  sigjmp_buf here;
  if (sigsetjmp(here, 1) != 0) {
    state.guard = outer;
    return state.raised;
  }
  state.guard = &here;
  body(argument);
  state.guard = outer;
  return std::nullopt;
}

}  // namespace attest::amx
