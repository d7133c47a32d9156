// Self-patching: an AMX site becomes `jmp rel32` to a trampoline, which saves the machine state and
// calls the emulator. About fifty times cheaper than a signal per instruction (docs/amx.md).

#include "backends/amx/emulation/patch.hpp"

#include <cpuid.h>
#include <linux/membarrier.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>

extern "C" {
/// Machine state as attest_amx_enter pushes it, lowest address first.
struct AttestAmxFrame {
  std::uint64_t r15, r14, r13, r12, r11, r10, r9, r8, rdi, rsi, rbp, rbx, rdx, rcx, flags;
  std::uint64_t return_address;
  const attest::amx::Site* site;
  std::uint64_t rax;
};
void attest_amx_enter();
void attest_amx_run(AttestAmxFrame* frame);
/// Bytes of the XSAVEC area, and the components saved: SSE, AVX, opmask, both ZMM parts, as far as
/// XCR0 has them. Tile state is ours and x87 is not touched.
std::uint64_t attest_amx_xsave_bytes = 0;
std::uint64_t attest_amx_xsave_mask = 0;
}

// Entered from a trampoline that skipped the red zone and pushed rax and the site.
__asm__(R"(
.text
.p2align 4
.globl attest_amx_enter
.hidden attest_amx_enter
.type attest_amx_enter, @function
attest_amx_enter:
  pushfq
  push %rcx
  push %rdx
  push %rbx
  push %rbp
  push %rsi
  push %rdi
  push %r8
  push %r9
  push %r10
  push %r11
  push %r12
  push %r13
  push %r14
  push %r15
  cld
  mov %rsp, %rbp
  sub attest_amx_xsave_bytes(%rip), %rsp
  and $-64, %rsp
  xor %eax, %eax
  mov %rax, 512(%rsp)
  mov %rax, 520(%rsp)
  mov %rax, 528(%rsp)
  mov %rax, 536(%rsp)
  mov %rax, 544(%rsp)
  mov %rax, 552(%rsp)
  mov %rax, 560(%rsp)
  mov %rax, 568(%rsp)
  mov attest_amx_xsave_mask(%rip), %eax
  xor %edx, %edx
  xsavec (%rsp)
  mov %rbp, %rdi
  call attest_amx_run
  mov attest_amx_xsave_mask(%rip), %eax
  xor %edx, %edx
  xrstor (%rsp)
  mov %rbp, %rsp
  pop %r15
  pop %r14
  pop %r13
  pop %r12
  pop %r11
  pop %r10
  pop %r9
  pop %r8
  pop %rdi
  pop %rsi
  pop %rbp
  pop %rbx
  pop %rdx
  pop %rcx
  popfq
  ret
.size attest_amx_enter, .-attest_amx_enter
)");

namespace attest::amx {
namespace {

constexpr std::size_t max_sites = 4096;
constexpr std::size_t trampoline_bytes = 64;
constexpr std::size_t pool_bytes = 65536;

// Fixed storage: a signal handler must not allocate. A Site is written before its index is
// published.
std::array<Site, max_sites> sites;
std::atomic<std::size_t> published{0};
std::atomic_flag busy = ATOMIC_FLAG_INIT;
std::uint8_t* pool = nullptr;
std::size_t pool_used = pool_bytes;

class Lock {
 public:
  Lock() {
    while (busy.test_and_set(std::memory_order_acquire)) __builtin_ia32_pause();
  }
  ~Lock() { busy.clear(std::memory_order_release); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
};

bool reaches(std::uint64_t from, std::uint64_t to) {
  const auto distance = static_cast<std::int64_t>(to - from);
  return distance > -0x7fff0000LL && distance < 0x7fff0000LL;
}

/// A free 64 KiB within reach of a 32-bit jump from `address`.
std::uint8_t* map_near(std::uint64_t address) {
  constexpr std::uint64_t step = 1 << 20;
  for (std::uint64_t n = 1; n < 1800; ++n) {
    for (const std::uint64_t hint : {address - n * step, address + n * step}) {
      void* const wish = reinterpret_cast<void*>(hint & ~std::uint64_t{0xffff});
      void* const got = mmap(wish, pool_bytes, PROT_READ | PROT_WRITE | PROT_EXEC,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
      if (got == MAP_FAILED) continue;
      if (reaches(address, reinterpret_cast<std::uint64_t>(got))) {
        return static_cast<std::uint8_t*>(got);
      }
      munmap(got, pool_bytes);
    }
  }
  return nullptr;
}

void measure_xsave() {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  __get_cpuid_count(0xd, 0, &a, &b, &c, &d);
  attest_amx_xsave_bytes = std::uint64_t{b} + 64;
  attest_amx_xsave_mask = 0xe6U & a;
}

/// lea -128(%rsp); push %rax; push site; call enter; pop; pop %rax; lea 128(%rsp); jmp back
void write_trampoline(std::uint8_t* out, const Site* site, std::uint64_t back) {
  std::uint8_t* p = out;
  const auto bytes = [&p](std::initializer_list<int> list) {
    for (const int b : list) *p++ = static_cast<std::uint8_t>(b);
  };
  const auto word = [&p](std::uint64_t value) {
    std::memcpy(p, &value, 8);
    p += 8;
  };
  bytes({0x48, 0x8d, 0x64, 0x24, 0x80});
  bytes({0x50});
  bytes({0x48, 0xb8});
  word(reinterpret_cast<std::uint64_t>(site));
  bytes({0x50});
  bytes({0x48, 0xb8});
  word(reinterpret_cast<std::uint64_t>(&attest_amx_enter));
  bytes({0xff, 0xd0});
  bytes({0x58, 0x58});
  bytes({0x48, 0x8d, 0xa4, 0x24, 0x80, 0x00, 0x00, 0x00});
  bytes({0xe9});
  const auto relative = static_cast<std::int32_t>(
      static_cast<std::int64_t>(back - reinterpret_cast<std::uint64_t>(p + 4)));
  std::memcpy(p, &relative, 4);
}

bool set_writable(std::uint64_t address, bool writable) {
  const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  const std::uint64_t first = address & ~(page - 1);
  const std::uint64_t last = (address + 4) & ~(page - 1);
  return mprotect(reinterpret_cast<void*>(first), last - first + page,
                  PROT_READ | PROT_EXEC | (writable ? PROT_WRITE : 0)) == 0;
}

/// Every core refetches its instructions before anyone goes on.
void sync_cores() {
  static const bool registered =
      syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0) == 0;
  if (registered) syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0);
}

/// One byte of code, by an instruction that no sanitizer sees: ThreadSanitizer has no shadow for
/// code and dies of a store that it instruments.
void put_byte(std::uint64_t address, std::uint8_t byte) {
  __asm__ volatile("movb %0, (%1)" ::"q"(byte), "r"(address) : "memory");
}

/// Writes five bytes of code that other threads may be executing: int3 first, then the tail, then
/// the first byte. A thread that meets the int3 is served by the SIGTRAP handler.
void write_code(std::uint64_t address, const std::uint8_t (&code)[5]) {
  put_byte(address, 0xcc);
  sync_cores();
  for (std::uint64_t i = 1; i < 5; ++i) put_byte(address + i, code[i]);
  sync_cores();
  put_byte(address, code[0]);
  sync_cores();
}

}  // namespace

const Site* find_site(std::uint64_t address) {
  const std::size_t count = published.load(std::memory_order_acquire);
  for (std::size_t i = 0; i < count; ++i) {
    if (sites[i].address == address) return &sites[i];
  }
  return nullptr;
}

bool patch_site(std::uint64_t address, const Instruction& instruction) {
  const Lock lock;
  // With prefixes the VEX is not first; such sites are rare enough to keep trapping.
  if (instruction.length < 5 || find_site(address) != nullptr) return false;
  const std::size_t index = published.load(std::memory_order_relaxed);
  if (index == max_sites) return false;
  if (attest_amx_xsave_bytes == 0) measure_xsave();
  if (pool == nullptr || pool_used + trampoline_bytes > pool_bytes ||
      !reaches(address, reinterpret_cast<std::uint64_t>(pool))) {
    pool = map_near(address);
    pool_used = 0;
    if (pool == nullptr) return false;
  }
  if (!set_writable(address, true)) return false;
  Site& site = sites[index];
  site.address = address;
  site.instruction = instruction;
  std::memcpy(site.original, reinterpret_cast<const void*>(address), 5);
  std::uint8_t* const trampoline = pool + pool_used;
  pool_used += trampoline_bytes;
  write_trampoline(trampoline, &site, address + static_cast<std::uint64_t>(instruction.length));
  std::uint8_t jump[5] = {0xe9};
  const auto relative = static_cast<std::int32_t>(
      static_cast<std::int64_t>(reinterpret_cast<std::uint64_t>(trampoline) - (address + 5)));
  std::memcpy(jump + 1, &relative, 4);
  published.store(index + 1, std::memory_order_release);
  write_code(address, jump);
  set_writable(address, false);
  return true;
}

void restore_sites() {
  const Lock lock;
  const std::size_t count = published.load(std::memory_order_relaxed);
  for (std::size_t i = 0; i < count; ++i) {
    if (!set_writable(sites[i].address, true)) continue;
    write_code(sites[i].address, sites[i].original);
    set_writable(sites[i].address, false);
  }
  published.store(0, std::memory_order_release);
}

int site_count() { return static_cast<int>(published.load(std::memory_order_acquire)); }

}  // namespace attest::amx

void attest_amx_run(AttestAmxFrame* frame) {
  // The site was written before it was published, by whichever thread patched it.
  static_cast<void>(attest::amx::site_count());
  attest::amx::Registers registers;
  // The frame ends where the trampoline's red-zone skip begins.
  const auto stack = reinterpret_cast<std::uint64_t>(frame + 1) + 128;
  registers.general = {frame->rax, frame->rcx, frame->rdx, frame->rbx, stack,      frame->rbp,
                       frame->rsi, frame->rdi, frame->r8,  frame->r9,  frame->r10, frame->r11,
                       frame->r12, frame->r13, frame->r14, frame->r15};
  registers.rip = frame->site->address;
  const attest::amx::Instruction& instruction = frame->site->instruction;
  if (instruction.segment == 4) __asm__("mov %%fs:0, %0" : "=r"(registers.fs_base));
  attest::amx::run_instruction(instruction, registers);
}
