#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "backends/amx/emulation/tile_file.hpp"

namespace attest::amx {

enum class Op { ldtilecfg, sttilecfg, tilerelease, tilezero, tileload, tilestore, dot };

/// One decoded AMX instruction. Register numbers are the hardware's: rax 0, rcx 1, ... r15 15.
struct Instruction {
  Op op = Op::tilerelease;
  Dot kind = Dot::bf16;
  std::string_view mnemonic;  ///< "tileloadd", "tdpbf16ps"
  int length = 0;             ///< bytes, prefixes included
  int vex_offset = 0;         ///< bytes of legacy prefixes before the VEX prefix
  int tile = 0;               ///< destination or source tile
  int src1 = 0, src2 = 0;     ///< of dots
  // Memory operand.
  int base = no_register;
  int index = no_register;
  int scale = 1;
  std::int64_t displacement = 0;
  bool rip_relative = false;
  bool address_32bit = false;  ///< 0x67
  int segment = no_register;   ///< 4 = fs, 5 = gs
  static constexpr int no_register = -1;
};

/// Decodes the instruction at `code` (at least 16 readable bytes); nothing when it is not AMX.
std::optional<Instruction> decode(const std::uint8_t* code);

/// The general registers when the instruction raised.
struct Registers {
  std::array<std::uint64_t, 16> general{};  ///< by hardware number
  std::uint64_t rip = 0;                    ///< of the instruction
  std::uint64_t fs_base = 0, gs_base = 0;
};

/// Address of the memory operand. For tileload and tilestore it excludes the index: that is the row
/// stride, index * scale (0 without an index register).
std::uint64_t address_of(const Instruction& instruction, const Registers& registers);
std::int64_t stride_of(const Instruction& instruction, const Registers& registers);

/// Executes it on the tile file and counts it.
Fault execute(const Instruction& instruction, const Registers& registers, TileFile& file,
              Counters& counters);

}  // namespace attest::amx
