#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "backends/amx/key_pack.hpp"

namespace attest::amx {

/// What the rows of a block see of the keys of a block: key j (counted from the block's first) is
/// visible to row r iff first[r] <= j < last[r] and, where `mask` is given, mask[j * 32 + r] != 0.
struct Visibility {
  bool everything = false;  ///< every row sees every key; the rest is not read then
  std::int32_t first[rows_per_block];
  std::int32_t last[rows_per_block];
  const std::uint8_t* mask = nullptr;
};

/// Attention of up to 32 packed query rows over any number of key blocks, on AMX tiles: S^T = K Q^T
/// and O += P V with tdpbf16ps, softmax online in float32 with the rows in the vector lanes, P
/// rounded to bf16, the denominator summed before that rounding. The tiles must be configured
/// (configure_tiles) on the thread.
///
/// A key block takes three kinds of steps, in this order: score(part) for every part, softmax(lane)
/// for every lane and finish_softmax() once, value(part) for every part. attend() below mixes the
/// steps of several row blocks.
class RowBlock {
 public:
  explicit RowBlock(const BlockShape& shape);

  /// Starts over with `rows` query rows; row r's head_dim elements are at q[r].
  void begin(int rows, const Bf16* const* q);

  int score_parts(const KeyPack& keys) const { return (keys.key_tiles() + 1) / 2; }
  void score(const KeyPack& keys, int part);
  int lanes() const { return (rows_ + 7) / 8; }
  void softmax(const KeyPack& keys, const Visibility& visible, int lane);
  void finish_softmax();
  int value_parts() const { return v_padded_ / 32; }
  void value(const KeyPack& keys, int part);

  int rows() const { return rows_; }
  /// Running maximum (of scores times log2 e) and denominator of row r, -inf and 0 while it saw no
  /// key.
  float maximum(int r) const { return maximum_[r]; }
  float denominator(int r) const { return denominator_[r]; }
  /// v_head_dim unnormalised sums of row r.
  const float* sums(int r) const { return sums_ + static_cast<std::ptrdiff_t>(r) * v_padded_; }

  /// The config every block computes with: eight full tiles.
  static void configure_tiles();

 private:
  void pack_queries(const Bf16* const* q);
  void prepare_scores(int lane, int keys, const Visibility& visible, bool raw);
  void probabilities(int lane, int keys, float to_log2);
  template <int row_tiles>
  void score_tiles(const KeyPack& keys, int tile);
  template <int row_tiles>
  void value_tiles(const KeyPack& keys, int d);

  BlockShape shape_;
  int k_padded_, v_padded_;
  int rows_ = 0;
  TileMemory memory_;
  // All in memory_, each aligned to 64 bytes.
  Bf16* q_;      ///< [k_padded / 2][32 rows][2]
  float* s_;     ///< [64 keys][32 rows]
  Bf16* p_;      ///< [32 rows][64 keys]
  float* sums_;  ///< [32 rows][v_padded]
  float* maximum_;
  float* denominator_;
  float* factor_;  ///< of the sums, from the last change of the maximum
};

/// A row block and what it sees of the key block at hand.
struct Looking {
  RowBlock* block = nullptr;
  const Visibility* visible = nullptr;
};

/// Attends one block of keys with several row blocks. Tile steps of the block before and after are
/// issued between the softmax steps of each, so that the tile unit works while the vector units do.
void attend(const KeyPack& keys, std::span<const Looking> rows);

/// Adds the partial result `from` (maximum, denominator, sums of `dim` floats) to `to`, both in the
/// form that RowBlock leaves.
void merge(float& to_maximum, float& to_denominator, float* to_sums, float from_maximum,
           float from_denominator, const float* from_sums, int dim);

/// sums / (denominator + sink) as bf16; 0 where no key and no sink was seen. `sink` is a natural
/// logit or nullptr.
void write_row(float maximum, float denominator, const float* sums, int dim, const float* sink,
               Bf16* out);

}  // namespace attest::amx
