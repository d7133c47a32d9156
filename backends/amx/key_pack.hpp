#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>

#include "backends/amx/defect.hpp"
#include "backends/wrap_model.hpp"

namespace attest::amx {

inline constexpr int keys_per_block = 64;  ///< K and V are walked in blocks of this many keys
inline constexpr int rows_per_block = 32;  ///< packed query rows (token, head of the kv group)

/// bf16 bits.
using Bf16 = std::uint16_t;

/// Sizes and scalars that are the same for every block of a call.
struct BlockShape {
  int head_dim = 0;
  int v_head_dim = 0;
  float scale = 1;
  float softcap = 0;  ///< 0 = off
  Defect defect = Defect::none;
  WrapModel wrap;  ///< of K and V in the pool
};

/// Memory of `bytes`, aligned to 64 and zeroed, or left as it is. \throws std::bad_alloc
using TileMemory = std::unique_ptr<std::byte, void (*)(void*)>;
TileMemory tile_memory(std::size_t bytes);
TileMemory raw_tile_memory(std::size_t bytes);
/// `value` rounded up to a multiple of 32, what one tile step covers.
constexpr int padded(int value) { return (value + 31) / 32 * 32; }

/// Addresses of the K and V rows of the keys [first, last) of a block of 64. A block starts at a
/// multiple of 64 keys of its request whatever rows look at it, so that a row's sums do not depend
/// on the rows beside it; keys outside the range are not there and are never read.
struct KeyBlock {
  int first = 0;
  int last = 0;
  const Bf16* k[keys_per_block];
  const Bf16* v[keys_per_block];

  /// Asks for the rows to be brought near.
  void prefetch(const BlockShape& shape) const;
};

/// Where K rows may stay as they are.
enum class KeyRows {
  in_place,  ///< where 16 keys in a row have one stride and head_dim is a multiple of 32
  copied,    ///< nowhere: many row blocks will load them, and rows of several heads collide in L1
};

/// One block of keys as the tiles take it, shared by every row block that sees it. K rows go into
/// tiles as they lie in memory or through a copy padded with zeros. V is interleaved pair by pair.
/// Nothing is read past a row's end.
class KeyPack {
 public:
  explicit KeyPack(const BlockShape& shape);
  /// On bytes_of(shape) bytes of memory that outlive it, whatever they hold.
  KeyPack(const BlockShape& shape, std::byte* memory);
  static std::size_t bytes_of(const BlockShape& shape);

  void pack(const KeyBlock& keys, KeyRows rows);
  /// Asks for the copied rows to be brought near.
  void prefetch() const;

  int keys() const { return keys_; }  ///< past the last one
  int key_tiles() const { return (keys_ + 15) / 16; }
  int key_steps() const { return (keys_ + 31) / 32; }
  const Bf16* k_tile(int tile) const { return k_tile_[tile]; }
  std::ptrdiff_t k_stride(int tile) const { return k_stride_[tile]; }  ///< bytes
  /// [32 key pairs][padded v_head_dim][2]
  const Bf16* v() const { return v_; }

 private:
  KeyPack(const BlockShape& shape, TileMemory memory);
  void pack_k(const KeyBlock& keys, KeyRows rows);
  void pack_v(const KeyBlock& keys);

  BlockShape shape_;
  int keys_ = 0;
  TileMemory memory_;  ///< null where it is somebody else's
  Bf16* k_;            ///< [64 keys][padded head_dim]
  Bf16* v_;
  const Bf16* k_tile_[keys_per_block / 16];
  std::ptrdiff_t k_stride_[keys_per_block / 16];
};

}  // namespace attest::amx
