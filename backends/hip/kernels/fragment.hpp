#pragma once

#include "backends/hip/runtime/kernel.hpp"

namespace attest::hip {

/// Packed query rows of one group of lanes: the m of the matrix instructions.
inline constexpr int group_rows = 16;

// Which elements of a 16-row product a lane of a group holds. A product is cut into tiles of
// `tile_columns` columns; of each, a lane has `elements` elements: `rows_held` rows by
// `columns_held` columns, element = row slot * columns_held + column slot. Lanes that share a row
// differ in their lowest `column_bits` bits. The plain products keep to the same layout as the
// matrix units, so that everything around them is one source.

/// Accumulators of mma.m16n8k16 (PTX ISA, "Matrix Fragments for mma.m16n8k16"). A group is a CUDA
/// warp, or half of a 64-wide wave.
struct MmaFragment {
  static constexpr int lanes = 32;
  static constexpr int tile_columns = 8;
  static constexpr int rows_held = 2;
  static constexpr int columns_held = 2;
  static constexpr int elements = rows_held * columns_held;
  static constexpr int column_bits = 2;
  __device__ static constexpr int row(int lane, int slot) { return lane / 4 + 8 * slot; }
  __device__ static constexpr int column(int lane, int tile, int slot) {
    return 8 * tile + 2 * (lane % 4) + slot;
  }
};

/// Accumulators of v_mfma_f32_16x16x16 (CDNA3 ISA, "Dense Matrix"): one column and four consecutive
/// rows of a 16 x 16 tile. A group is a whole 64-wide wave.
struct MfmaFragment {
  static constexpr int lanes = 64;
  static constexpr int tile_columns = 16;
  static constexpr int rows_held = 4;
  static constexpr int columns_held = 1;
  static constexpr int elements = rows_held * columns_held;
  static constexpr int column_bits = 4;
  __device__ static constexpr int row(int lane, int slot) { return lane / 16 * 4 + slot; }
  __device__ static constexpr int column(int lane, int tile, int) { return 16 * tile + lane % 16; }
};

/// This thread's place in its group.
template <class F>
__device__ __forceinline__ int lane_of() {
  return static_cast<int>(threadIdx.x) % F::lanes;
}

}  // namespace attest::hip
