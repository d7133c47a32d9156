#include "backends/amx/emulation/decoder.hpp"

#include <cstring>

namespace attest::amx {
namespace {

/// The AMX part of VEX map 0F38: opcode, mandatory prefix (0 none, 1 66, 2 F3, 3 F2).
struct Encoding {
  std::uint8_t opcode;
  int prefix;
  bool memory;
  Op op;
  Dot kind;
  std::string_view mnemonic;
};

constexpr Encoding encodings[] = {
    {0x49, 0, true, Op::ldtilecfg, Dot::bf16, "ldtilecfg"},
    {0x49, 1, true, Op::sttilecfg, Dot::bf16, "sttilecfg"},
    {0x49, 0, false, Op::tilerelease, Dot::bf16, "tilerelease"},
    {0x49, 3, false, Op::tilezero, Dot::bf16, "tilezero"},
    {0x4b, 3, true, Op::tileload, Dot::bf16, "tileloadd"},
    {0x4b, 1, true, Op::tileload, Dot::bf16, "tileloaddt1"},
    {0x4b, 2, true, Op::tilestore, Dot::bf16, "tilestored"},
    {0x5c, 2, false, Op::dot, Dot::bf16, "tdpbf16ps"},
    {0x5c, 3, false, Op::dot, Dot::fp16, "tdpfp16ps"},
    {0x5e, 3, false, Op::dot, Dot::ss, "tdpbssd"},
    {0x5e, 2, false, Op::dot, Dot::su, "tdpbsud"},
    {0x5e, 1, false, Op::dot, Dot::us, "tdpbusd"},
    {0x5e, 0, false, Op::dot, Dot::uu, "tdpbuud"},
};

const Encoding* find(std::uint8_t opcode, int prefix, bool memory) {
  for (const Encoding& e : encodings) {
    if (e.opcode == opcode && e.prefix == prefix && e.memory == memory) return &e;
  }
  return nullptr;
}

/// Legacy prefixes that may stand before VEX. 66, F2, F3, F0 and REX there raise #UD.
bool read_prefixes(const std::uint8_t*& p, Instruction& instruction) {
  for (int n = 0; n < 8; ++n, ++p) {
    switch (*p) {
      case 0x64:
        instruction.segment = 4;
        break;
      case 0x65:
        instruction.segment = 5;
        break;
      case 0x67:
        instruction.address_32bit = true;
        break;
      case 0x26:
      case 0x2e:
      case 0x36:
      case 0x3e:
        break;  // ignored in 64-bit mode
      default:
        return true;
    }
  }
  return false;
}

/// ModRM, SIB and displacement of a memory operand; p stands behind ModRM.
void read_memory(const std::uint8_t*& p, std::uint8_t modrm, int x, int b, Instruction& out) {
  const int mod = modrm >> 6;
  const int rm = modrm & 7;
  int displacement_bytes = mod == 1 ? 1 : mod == 2 ? 4 : 0;
  if (rm == 4) {
    const std::uint8_t sib = *p++;
    const int index = ((sib >> 3) & 7) | (x << 3);
    if (index != 4) {
      out.index = index;
      out.scale = 1 << (sib >> 6);
    }
    if ((sib & 7) == 5 && mod == 0) {
      displacement_bytes = 4;
    } else {
      out.base = (sib & 7) | (b << 3);
    }
  } else if (rm == 5 && mod == 0) {
    out.rip_relative = true;
    displacement_bytes = 4;
  } else {
    out.base = rm | (b << 3);
  }
  if (displacement_bytes == 1) {
    out.displacement = static_cast<std::int8_t>(*p);
  } else if (displacement_bytes == 4) {
    std::int32_t value = 0;
    std::memcpy(&value, p, 4);
    out.displacement = value;
  }
  p += displacement_bytes;
}

/// Operand registers, and the encodings that raise #UD although the opcode is AMX's.
bool read_operands(const Encoding& e, std::uint8_t modrm, int vvvv, Instruction& out) {
  const int reg = (modrm >> 3) & 7;
  const int rm = modrm & 7;
  switch (e.op) {
    case Op::ldtilecfg:
    case Op::sttilecfg:
      return reg == 0 && vvvv == 0;
    case Op::tilerelease:
      return modrm == 0xc0 && vvvv == 0;
    case Op::tilezero:
      out.tile = reg;
      return rm == 0 && vvvv == 0;
    case Op::tileload:
    case Op::tilestore:
      out.tile = reg;
      return rm == 4 && vvvv == 0;  // a SIB byte is required
    case Op::dot:
      out.tile = reg;
      out.src1 = rm;
      out.src2 = vvvv;
      return vvvv < num_tiles;
  }
  return false;
}

std::uint64_t register_or_zero(const Registers& registers, int number) {
  return number == Instruction::no_register ? 0
                                            : registers.general[static_cast<std::size_t>(number)];
}

/// Bytes a load or store of this tile moves.
std::uint64_t moved_bytes(const TileFile& file, int tile) {
  const auto t = static_cast<std::size_t>(tile);
  return std::uint64_t{file.config.rows[t]} * file.config.colsb[t];
}

void note_read(Counters& counters, int tile) {
  if ((counters.written & (1U << tile)) == 0) ++counters.reads_before_write;
}

Fault execute_dot(const Instruction& i, TileFile& file, Counters& counters) {
  const Fault fault = dot(file, i.kind, i.tile, i.src1, i.src2);
  if (fault) return fault;
  ++counters.dots;
  // ldtilecfg zeroes the tiles, so an accumulator that was never written is a defined zero.
  note_read(counters, i.src1);
  note_read(counters, i.src2);
  counters.written |= 1U << i.tile;
  return {};
}

Fault execute_move(const Instruction& i, const Registers& registers, TileFile& file,
                   Counters& counters) {
  const std::uint64_t address = address_of(i, registers);
  const std::int64_t stride = stride_of(i, registers);
  const bool many_rows = file.config.rows[static_cast<std::size_t>(i.tile)] > 1;
  if (i.op == Op::tilestore) {
    const Fault fault = store(file, i.tile, reinterpret_cast<std::byte*>(address), stride);
    if (fault) return fault;
    ++counters.stores;
    counters.bytes_stored += moved_bytes(file, i.tile);
    note_read(counters, i.tile);
    return {};
  }
  const Fault fault = load(file, i.tile, reinterpret_cast<const std::byte*>(address), stride);
  if (fault) return fault;
  ++counters.loads;
  counters.bytes_loaded += moved_bytes(file, i.tile);
  counters.written |= 1U << i.tile;
  if (stride == 0 && many_rows) ++counters.zero_strides;
  return {};
}

}  // namespace

std::optional<Instruction> decode(const std::uint8_t* code) {
  Instruction out;
  const std::uint8_t* p = code;
  if (!read_prefixes(p, out)) return std::nullopt;
  out.vex_offset = static_cast<int>(p - code);
  if (p[0] != 0xc4) return std::nullopt;  // map 0F38 needs the three-byte VEX
  const std::uint8_t first = p[1];
  const std::uint8_t second = p[2];
  const std::uint8_t opcode = p[3];
  if ((first & 0x1f) != 2 || (second & 0x84) != 0) return std::nullopt;  // map, W = 0, L = 0
  const int r = (first >> 7) ^ 1;
  const int x = ((first >> 6) & 1) ^ 1;
  const int b = ((first >> 5) & 1) ^ 1;
  const int vvvv = ((second >> 3) & 15) ^ 15;
  const std::uint8_t modrm = p[4];
  const bool memory = (modrm >> 6) != 3;
  const Encoding* e = find(opcode, second & 3, memory);
  if (e == nullptr || r != 0 || (!memory && b != 0)) return std::nullopt;
  if (!read_operands(*e, modrm, vvvv, out)) return std::nullopt;
  out.op = e->op;
  out.kind = e->kind;
  out.mnemonic = e->mnemonic;
  p += 5;
  if (memory) read_memory(p, modrm, x, b, out);
  out.length = static_cast<int>(p - code);
  return out;
}

std::uint64_t address_of(const Instruction& i, const Registers& registers) {
  std::uint64_t address = static_cast<std::uint64_t>(i.displacement);
  if (i.rip_relative) address += registers.rip + static_cast<std::uint64_t>(i.length);
  address += register_or_zero(registers, i.base);
  const bool index_is_stride = i.op == Op::tileload || i.op == Op::tilestore;
  if (!index_is_stride) {
    address += register_or_zero(registers, i.index) * static_cast<std::uint64_t>(i.scale);
  }
  if (i.address_32bit) address &= 0xffffffffU;
  if (i.segment == 4) address += registers.fs_base;
  if (i.segment == 5) address += registers.gs_base;
  return address;
}

std::int64_t stride_of(const Instruction& i, const Registers& registers) {
  return static_cast<std::int64_t>(register_or_zero(registers, i.index) *
                                   static_cast<std::uint64_t>(i.scale));
}

Fault execute(const Instruction& i, const Registers& registers, TileFile& file,
              Counters& counters) {
  switch (i.op) {
    case Op::ldtilecfg: {
      TileConfig config;
      std::memcpy(&config, reinterpret_cast<const void*>(address_of(i, registers)), sizeof config);
      const Fault fault = load_config(file, config);
      if (fault) return fault;
      ++counters.configs;
      counters.written = 0;
      return {};
    }
    case Op::sttilecfg: {
      TileConfig config;
      store_config(file, config);
      std::memcpy(reinterpret_cast<void*>(address_of(i, registers)), &config, sizeof config);
      return {};
    }
    case Op::tilerelease:
      release(file);
      return {};
    case Op::tilezero: {
      const Fault fault = zero(file, i.tile);
      if (!fault) counters.written |= 1U << i.tile;
      return fault;
    }
    case Op::tileload:
    case Op::tilestore:
      return execute_move(i, registers, file, counters);
    case Op::dot:
      return execute_dot(i, file, counters);
  }
  return {Exception::ud, "not an AMX instruction"};
}

}  // namespace attest::amx
