#pragma once

#include <cstdint>

#include "backends/hip/kernels/fragment.hpp"

namespace attest::hip {

/// Sizes of one block, fixed at compile time. A block is row_groups x key_groups groups of lanes:
/// groups of one row number share 16 packed rows and divide the keys of each tile.
template <class Fragment_, int head_dim_, int v_dim_, int row_groups_, int key_groups_, int tile_,
          int stages_, bool v_in_k_ = false>
struct Shape {
  using Fragment = Fragment_;
  static constexpr int head_dim = head_dim_;  ///< of q and k, rounded up
  static constexpr int v_dim = v_dim_;        ///< of v: all of it, or one chunk (MLA)
  static constexpr int row_groups = row_groups_;
  static constexpr int key_groups = key_groups_;
  static constexpr int tile = tile_;       ///< keys loaded at a time
  static constexpr int stages = stages_;   ///< 2 = the next tile loads while this one is computed
  static constexpr bool v_in_k = v_in_k_;  ///< v lies in k's row (MLA)

  static constexpr int groups = row_groups * key_groups;
  static constexpr int threads = Fragment::lanes * groups;
  static constexpr int rows = group_rows * row_groups;
  /// Blocks that must fit a multiprocessor at a time, which bounds a thread's registers.
  static constexpr int resident_blocks = head_dim <= 128 && v_dim <= 128 ? 2 : 1;
  static constexpr int group_keys = tile / key_groups;
  static constexpr int score_tiles = group_keys / Fragment::tile_columns;
  static constexpr int value_tiles = v_dim / Fragment::tile_columns;

  static_assert(group_keys % 16 == 0, "the second product takes 16 keys at a time");
  static_assert(head_dim % 16 == 0 && v_dim % 16 == 0);
  static_assert(stages == 1 || stages == 2);
};

/// What a block keeps of one of its rows: where it lies in q, later in the output, and there what
/// each of its groups' parts counts. `at` is -1 for a row that is none.
template <int key_groups>
struct RowPlace {
  static constexpr int bytes = 8 + (key_groups + 1) / 2 * 8;
  std::int64_t at;
  float weight[key_groups];
};

/// Where things lie in a block's shared memory, in bytes. Rows are padded by 16 bytes so that eight
/// consecutive ones start in different banks.
template <class T, class S>
struct SharedLayout {
  static constexpr int element = static_cast<int>(sizeof(T));
  static constexpr int q_pitch = S::head_dim + 16 / element;  ///< elements
  static constexpr int k_pitch = q_pitch;
  static constexpr int v_pitch = S::v_in_k ? k_pitch : S::v_dim + 16 / element;
  static constexpr int merge_pitch = S::v_dim + 8;         ///< floats
  static constexpr int weights_pitch = S::group_keys + 1;  ///< floats

  static constexpr int q = 0;
  static constexpr int k = q + S::rows * q_pitch * element;
  static constexpr int k_stage = S::tile * k_pitch * element;
  static constexpr int v = k + S::stages * k_stage;
  static constexpr int v_stage = S::v_in_k ? 0 : S::tile * v_pitch * element;
  static constexpr int tiles_end = v + S::stages * v_stage;
  // The merge of the groups comes after the last tile and reuses its memory.
  static constexpr int merge = k;
  static constexpr int merge_end = merge + S::groups * group_rows * merge_pitch * 4;
  static constexpr int after_tiles = tiles_end > merge_end ? tiles_end : merge_end;
  static constexpr int offsets = (after_tiles + 15) / 16 * 16;  ///< [2][K, V][tile] int64
  static constexpr int places = offsets + 4 * S::tile * 8;      ///< [rows] RowPlace
  static constexpr int stats = places + S::rows * RowPlace<S::key_groups>::bytes;
  ///< [groups][16][2] floats
  static constexpr int weights = stats + S::groups * group_rows * 2 * 4;
  /// The plain second product passes the probabilities through memory, matrix units do not.
  static constexpr int bytes(bool plain) {
    return weights + (plain ? S::groups * group_rows * weights_pitch * 4 : 0);
  }
};

}  // namespace attest::hip
