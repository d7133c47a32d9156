#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

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
};

/// Addresses of the K and V rows of up to 64 keys.
struct KeyBlock {
  int count = 0;
  const Bf16* k[keys_per_block];
  const Bf16* v[keys_per_block];
};

/// What the rows of a block see of the keys of a block: key j (counted from the block's first) is
/// visible to row r iff first[r] <= j < last[r] and, where `mask` is given, mask[j * 32 + r] != 0.
struct Visibility {
  std::int32_t first[rows_per_block];
  std::int32_t last[rows_per_block];
  const std::uint8_t* mask = nullptr;
};

/// Attention of up to 32 packed query rows over any number of key blocks, on AMX tiles: S^T = K Q^T
/// and O += P V with tdpbf16ps, softmax online in float32 with the rows in the vector lanes, P
/// rounded to bf16, the denominator summed before that rounding. One per thread; the tiles must be
/// configured (configure_tiles) on that thread.
///
/// K rows go into tiles as they lie in memory where 16 keys in a row have one stride and head_dim
/// is a multiple of 32; otherwise through a copy padded with zeros. Nothing is read past a row's
/// end.
class RowBlock {
 public:
  explicit RowBlock(const BlockShape& shape);

  /// Starts over with `rows` query rows; row r's head_dim elements are at q[r].
  void begin(int rows, const Bf16* const* q);
  /// Attends one block of keys.
  void attend(const KeyBlock& keys, const Visibility& visible);

  int rows() const { return rows_; }
  /// Running maximum and denominator of row r, -inf and 0 while it saw no key.
  float maximum(int r) const { return maximum_[r]; }
  float denominator(int r) const { return denominator_[r]; }
  /// v_head_dim unnormalised sums of row r.
  const float* sums(int r) const { return sums_ + static_cast<std::ptrdiff_t>(r) * v_padded_; }

  /// The config every block computes with: eight full tiles.
  static void configure_tiles();

 private:
  void gather(const KeyBlock& keys);
  void scores(const KeyBlock& keys);
  bool softmax(int keys, const Visibility& visible);
  void score_lanes(int lane, int keys, const Visibility& visible, bool masked);
  void probability_lanes(int lane, int keys);
  void rescale();
  void accumulate(int keys);
  template <int row_tiles>
  void score_tiles(int key_tiles);
  template <int row_tiles>
  void value_tiles(int key_steps);

  BlockShape shape_;
  int k_padded_, v_padded_;  ///< dims rounded up to 32
  int rows_ = 0;
  std::unique_ptr<std::byte, void (*)(void*)> memory_;
  // All in memory_, each aligned to 64 bytes.
  Bf16* q_;      ///< [k_padded / 2][32 rows][2]
  Bf16* k_;      ///< [64 keys][k_padded]
  Bf16* v_;      ///< [32 key pairs][v_padded][2]
  float* s_;     ///< [64 keys][32 rows]
  Bf16* p_;      ///< [32 rows][64 keys]
  float* sums_;  ///< [32 rows][v_padded]
  float* maximum_;
  float* denominator_;
  float* factor_;                              ///< of the sums, from the last change of the maximum
  const Bf16* key_tile_[keys_per_block / 16];  ///< first row of each 16-key tile
  std::ptrdiff_t key_tile_stride_[keys_per_block / 16];  ///< bytes
};

/// Adds the partial result `from` (maximum, denominator, sums of `dim` floats) to `to`, both in the
/// running form. Splits of one row are merged in order, so the result does not depend on threads.
void merge(float& to_maximum, float& to_denominator, float* to_sums, float from_maximum,
           float from_denominator, const float* from_sums, int dim);

/// sums / denominator -> bf16, the sink counted once in the denominator. A row that saw nothing is
/// 0.
void write_row(float maximum, float denominator, const float* sums, int dim, const float* sink,
               Bf16* out);

}  // namespace attest::amx
