#include "memory/poison.hpp"

#include <algorithm>
#include <cstring>

namespace attest {
namespace {

constexpr std::array<std::string_view, 3> poison_names = {"nan", "loud", "ordinary"};
constexpr std::array<std::string_view, 5> region_names = {"before the pool", "unreferenced page",
                                                          "past kv_len", "token not stored yet",
                                                          "behind the pool"};

/// Poison repeated to one cache-friendly block; regions are filled and compared by blocks.
constexpr std::size_t block_bytes = 4096;
using Block = std::array<std::byte, block_bytes>;

/// The first `needed` bytes are set.
Block block_of(Dtype dtype, Poison poison, Region region, std::size_t needed) {
  Block block;
  const std::uint32_t bits = poison_bits(dtype, poison, region);
  const std::size_t step = size_bytes(dtype);
  for (std::size_t at = 0; at < std::min(needed, block_bytes); at += step) {
    const auto byte = static_cast<std::uint8_t>(bits);
    const auto half = static_cast<std::uint16_t>(bits);
    const void* from = step == 1   ? static_cast<const void*>(&byte)
                       : step == 2 ? static_cast<const void*>(&half)
                                   : static_cast<const void*>(&bits);
    std::memcpy(block.data() + at, from, step);
  }
  return block;
}

std::uint32_t loud_bits(Dtype dtype, std::uint32_t region) {
  constexpr std::uint32_t two_to_100 = (100 + 127) << 7;  // bf16
  switch (dtype) {
    case Dtype::f32:
      return (two_to_100 | (region << 4)) << 16;
    case Dtype::f16:
      return ((15U + 15U) << 10) | (region << 7);
    case Dtype::fp8_e4m3fn:
      return 0x7eU - (region - 1);
    case Dtype::fp8_e4m3fnuz:
      return 0x7fU - (region - 1);
    default:
      return two_to_100 | (region << 4);
  }
}

}  // namespace

std::string_view name(Poison poison) { return poison_names[static_cast<std::size_t>(poison)]; }

std::optional<Poison> poison_from_name(std::string_view text) {
  const auto* const at = std::find(poison_names.begin(), poison_names.end(), text);
  if (at == poison_names.end()) return std::nullopt;
  return static_cast<Poison>(at - poison_names.begin());
}

std::string_view name(Region region) { return region_names[static_cast<std::size_t>(region) - 1]; }

std::uint32_t poison_bits(Dtype dtype, Poison poison, Region region) {
  const auto number = static_cast<std::uint32_t>(region);
  if (poison == Poison::loud) return loud_bits(dtype, number);
  if (poison == Poison::ordinary) return encode(dtype, 1 + static_cast<float>(number) / 8);
  switch (dtype) {
    case Dtype::f32:
      return (0x7fc0U + number) << 16 | (0x7fc0U + number);
    case Dtype::fp8_e4m3fn:
      return 0x7f;
    case Dtype::fp8_e4m3fnuz:
      return 0x80;
    default:
      return 0x7fc0U + number;
  }
}

std::optional<Region> poisoned_region(Dtype dtype, std::uint32_t bits) {
  for (const Region region : all_regions) {
    if (bits == poison_bits(dtype, Poison::loud, region)) return region;
    if (!is_fp8(dtype) && bits == poison_bits(dtype, Poison::nan, region)) return region;
  }
  return std::nullopt;
}

void fill_poison(std::span<std::byte> out, Dtype dtype, Poison poison, Region region) {
  if (out.empty()) return;
  const Block block = block_of(dtype, poison, region, out.size());
  for (std::size_t at = 0; at < out.size(); at += block_bytes) {
    std::memcpy(out.data() + at, block.data(), std::min(block_bytes, out.size() - at));
  }
}

std::optional<std::size_t> first_not_poison(std::span<const std::byte> bytes, Dtype dtype,
                                            Poison poison, Region region) {
  if (bytes.empty()) return std::nullopt;
  const Block block = block_of(dtype, poison, region, bytes.size());
  for (std::size_t at = 0; at < bytes.size(); at += block_bytes) {
    const std::size_t count = std::min(block_bytes, bytes.size() - at);
    if (std::memcmp(bytes.data() + at, block.data(), count) == 0) continue;
    const auto* const from = bytes.data() + at;
    const auto* const differs = std::mismatch(from, from + count, block.data()).first;
    return at + static_cast<std::size_t>(differs - from);
  }
  return std::nullopt;
}

}  // namespace attest
