#pragma once

#include <cstdint>

#include "backends/amx/emulation/decoder.hpp"

namespace attest::amx {

/// A patched AMX instruction.
struct Site {
  std::uint64_t address = 0;
  Instruction instruction;
  std::uint8_t original[5] = {};
};

/// Replaces the instruction at `address` (>= 5 bytes, as every one with a three-byte VEX is) by a
/// jump to a trampoline that emulates it. Safe while other threads run the same code. Called from
/// the SIGILL handler: allocates only with mmap. False when no memory within reach of a 32-bit jump
/// is free, the page cannot be made writable, or the table is full; the site then keeps trapping.
bool patch_site(std::uint64_t address, const Instruction& instruction);

/// The site whose first byte is at `address` (patched or half-way there), or nullptr.
const Site* find_site(std::uint64_t address);

/// Puts every original instruction back. No other thread may be running patched code.
void restore_sites();
int site_count();

/// Called by the trampolines (and by tests) to run one site's instruction.
void run_instruction(const Instruction& instruction, const Registers& registers);

}  // namespace attest::amx
