#include "backends/amx/emulation/tile_file.hpp"

#include <algorithm>
#include <cstring>

namespace attest::amx {
namespace {

Fault ud(const char* reason) { return {Exception::ud, reason}; }
Fault gp(const char* reason) { return {Exception::gp, reason}; }

template <class Bytes>
bool all_zero(const Bytes& bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::uint8_t b) { return b == 0; });
}

/// What every instruction that touches tile data checks of a tile. colsb % 4 is not in the SDM's
/// pseudo-code; silicon raises for all of 1..63 that are not multiples of 4.
Fault check_tile(const TileFile& file, int tile) {
  if (!file.configured) return ud("tiles are not configured");
  const auto t = static_cast<std::size_t>(tile);
  if (file.config.rows[t] == 0) return ud("the tile has no rows in the configuration");
  if (file.config.colsb[t] % 4 != 0) return ud("colsb of the tile is not a multiple of 4");
  return {};
}

/// Silicon takes any start_row in a configuration, and raises when a load or store then starts past
/// the tile's last row; tilezero and the dots do not look at it (measured, Emerald Rapids).
Fault check_move(const TileFile& file, int tile) {
  if (const Fault fault = check_tile(file, tile)) return fault;
  if (file.config.start_row >= file.config.rows[static_cast<std::size_t>(tile)]) {
    return ud("start_row is past the last row of the tile");
  }
  return {};
}

}  // namespace

Fault load_config(TileFile& file, const TileConfig& config) {
  if (config.palette > 1) return gp("palette id > 1");
  if (config.palette == 0) {
    release(file);
    return {};
  }
  if (!all_zero(config.reserved0) || !all_zero(config.reserved1) || !all_zero(config.reserved2)) {
    return gp("a reserved byte of the configuration is not zero");
  }
  for (std::size_t t = 0; t < num_tiles; ++t) {
    if (config.colsb[t] > max_colsb) return gp("colsb > 64");
    if (config.rows[t] > max_rows) return gp("rows > 16");
    if ((config.colsb[t] == 0) != (config.rows[t] == 0)) {
      return gp("exactly one of rows and colsb of a tile is zero");
    }
  }
  file.configured = true;
  file.config = config;
  file.data = {};
  return {};
}

void store_config(const TileFile& file, TileConfig& config) {
  config = file.configured ? file.config : TileConfig{};
}

void release(TileFile& file) {
  file.configured = false;
  file.config = {};
  file.data = {};
}

Fault zero(TileFile& file, int tile) {
  if (const Fault fault = check_tile(file, tile)) return fault;
  file.data[static_cast<std::size_t>(tile)] = {};
  file.config.start_row = 0;
  return {};
}

Fault load(TileFile& file, int tile, const std::byte* base, std::int64_t stride) {
  if (const Fault fault = check_move(file, tile)) return fault;
  const auto t = static_cast<std::size_t>(tile);
  const std::size_t rows = file.config.rows[t];
  const std::size_t colsb = file.config.colsb[t];
  for (std::size_t r = file.config.start_row; r < rows; ++r) {
    auto& row = file.data[t][r];
    std::memcpy(row.data(), base + static_cast<std::int64_t>(r) * stride, colsb);
    std::fill(row.begin() + static_cast<std::ptrdiff_t>(colsb), row.end(), std::uint8_t{0});
  }
  for (std::size_t r = rows; r < max_rows; ++r) file.data[t][r] = {};
  file.config.start_row = 0;
  return {};
}

Fault store(TileFile& file, int tile, std::byte* base, std::int64_t stride) {
  if (const Fault fault = check_move(file, tile)) return fault;
  const auto t = static_cast<std::size_t>(tile);
  for (std::size_t r = file.config.start_row; r < file.config.rows[t]; ++r) {
    std::memcpy(base + static_cast<std::int64_t>(r) * stride, file.data[t][r].data(),
                file.config.colsb[t]);
  }
  file.config.start_row = 0;
  return {};
}

}  // namespace attest::amx
