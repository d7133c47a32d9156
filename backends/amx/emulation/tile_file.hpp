#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace attest::amx {

inline constexpr int num_tiles = 8;
inline constexpr int max_rows = 16;
inline constexpr int max_colsb = 64;  ///< bytes of a tile row

/// Why an AMX instruction raised, as the CPU would raise it.
enum class Exception { none, ud, gp };

/// Nothing raised, or what and why: "tdpbf16ps: src1.colsb / 4 = 8, src2.rows = 16".
struct Fault {
  Exception exception = Exception::none;
  const char* reason = "";
  explicit operator bool() const { return exception != Exception::none; }
};

/// The 64 bytes that ldtilecfg reads and sttilecfg writes (palette 1).
struct alignas(64) TileConfig {
  std::uint8_t palette = 0;
  std::uint8_t start_row = 0;
  std::array<std::uint8_t, 14> reserved0{};
  std::array<std::uint16_t, 8> colsb{};
  std::array<std::uint8_t, 16> reserved1{};
  std::array<std::uint8_t, 8> rows{};
  std::array<std::uint8_t, 8> reserved2{};
};
static_assert(sizeof(TileConfig) == 64);

/// The architectural tile state of one thread.
struct TileFile {
  bool configured = false;
  TileConfig config;
  alignas(
      64) std::array<std::array<std::array<std::uint8_t, max_colsb>, max_rows>, num_tiles> data{};
};

/// What ran, for reports and lints. Per thread; a backend sums them.
struct Counters {
  std::uint64_t configs = 0;
  std::uint64_t loads = 0;
  std::uint64_t stores = 0;
  std::uint64_t dots = 0;
  std::uint64_t bytes_loaded = 0;
  std::uint64_t bytes_stored = 0;
  std::uint64_t zero_strides = 0;  ///< lint: tileloadd of more than one row with stride 0
  std::uint64_t reads_before_write =
      0;                      ///< lint: a dot or store of a tile never written since ldtilecfg
  std::uint32_t written = 0;  ///< bit per tile: written since ldtilecfg
};

/// Instructions on a TileFile, as the SDM states them and as measured on silicon (docs/amx.md).
/// A fault leaves the state unchanged.

Fault load_config(TileFile& file, const TileConfig& config);
void store_config(const TileFile& file, TileConfig& config);
void release(TileFile& file);
Fault zero(TileFile& file, int tile);
/// Row r of the tile is the colsb bytes at base + r * stride.
Fault load(TileFile& file, int tile, const std::byte* base, std::int64_t stride);
Fault store(TileFile& file, int tile, std::byte* base, std::int64_t stride);

enum class Dot { bf16, fp16, ss, su, us, uu };  ///< int8: signedness of src1 and src2

/// dst += src1 * src2, pairs (bf16, fp16) or quads (int8) of elements per 32-bit lane.
Fault dot(TileFile& file, Dot kind, int dst, int src1, int src2);

/// The same arithmetic, one element at a time and without the host's vector FMA: slow, explicit
/// about NaN priority. Used for rows with a NaN, and to check the fast one.
void dot_row_scalar(TileFile& file, Dot kind, int dst, int src1, int src2, int row);

}  // namespace attest::amx
