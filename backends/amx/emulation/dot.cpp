// The dot products of tile_file.hpp. Order of operations as measured on silicon (docs/amx.md): per
// destination element two accumulators from zero, one for even and one for odd elements of the
// pairs, one fused multiply-add each per k; then even + odd; then destination + that. Denormals are
// zero and rounding is to nearest even whatever MXCSR says.

#include <immintrin.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "backends/amx/emulation/tile_file.hpp"

namespace attest::amx {
namespace {

/// MXCSR for the duration of one dot: all exceptions masked, DAZ, FTZ, round to nearest even.
class TileRounding {
 public:
  TileRounding() : saved_(_mm_getcsr()) { _mm_setcsr(0x9fc0); }
  ~TileRounding() { _mm_setcsr(saved_); }
  TileRounding(const TileRounding&) = delete;
  TileRounding& operator=(const TileRounding&) = delete;

 private:
  unsigned saved_;
};

float bf16_value(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); }

/// Every fp16 value, denormals included, is a normal or zero float32.
float fp16_value(std::uint16_t bits) {
  return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(bits)));
}

std::uint16_t element(const TileFile& file, int tile, std::size_t row, std::size_t index) {
  std::uint16_t bits = 0;
  std::memcpy(&bits, file.data[static_cast<std::size_t>(tile)][row].data() + 2 * index, 2);
  return bits;
}

float quiet(float nan) {
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(nan) | 0x400000U);
}

constexpr std::uint32_t default_nan = 0xffc00000U;

/// a * b + c with NaN priority a, b, c.
float fused(float a, float b, float c) {
  if (std::isnan(a)) return quiet(a);
  if (std::isnan(b)) return quiet(b);
  if (std::isnan(c)) return quiet(c);
  const float result = _mm_cvtss_f32(_mm_fmadd_ss(_mm_set_ss(a), _mm_set_ss(b), _mm_set_ss(c)));
  return std::isnan(result) ? std::bit_cast<float>(default_nan) : result;
}

float sum(float first, float second) {
  if (std::isnan(first)) return quiet(first);
  if (std::isnan(second)) return quiet(second);
  const float result = first + second;
  return std::isnan(result) ? std::bit_cast<float>(default_nan) : result;
}

Fault check_dot(const TileFile& file, int dst, int src1, int src2) {
  if (!file.configured) return {Exception::ud, "tiles are not configured"};
  if (dst == src1 || dst == src2 || src1 == src2)
    return {Exception::ud, "two operands are one tile"};
  const auto& rows = file.config.rows;
  const auto& colsb = file.config.colsb;
  const auto d = static_cast<std::size_t>(dst);
  const auto a = static_cast<std::size_t>(src1);
  const auto b = static_cast<std::size_t>(src2);
  for (const std::size_t t : {d, a, b}) {
    if (rows[t] == 0) return {Exception::ud, "a tile has no rows in the configuration"};
    if (colsb[t] % 4 != 0) return {Exception::ud, "colsb of a tile is not a multiple of 4"};
  }
  if (rows[d] != rows[a]) return {Exception::ud, "dst.rows != src1.rows"};
  if (colsb[d] != colsb[b]) return {Exception::ud, "dst.colsb != src2.colsb"};
  if (colsb[a] / 4 != rows[b]) return {Exception::ud, "src1.colsb / 4 != src2.rows"};
  return {};
}

/// src2 as float32, even and odd elements apart: widened once, used by every row.
struct Widened {
  alignas(32) float even[max_rows][16];
  alignas(32) float odd[max_rows][16];
};

void widen(const TileFile& file, Dot kind, int src2, Widened& out) {
  const auto b = static_cast<std::size_t>(src2);
  for (std::size_t k = 0; k < file.config.rows[b]; ++k) {
    for (std::size_t half = 0; half < 2; ++half) {
      const __m256i packed =
          _mm256_load_si256(reinterpret_cast<const __m256i*>(file.data[b][k].data() + 32 * half));
      __m256 even;
      __m256 odd;
      if (kind == Dot::bf16) {
        even = _mm256_castsi256_ps(_mm256_slli_epi32(packed, 16));
        odd = _mm256_castsi256_ps(
            _mm256_and_si256(packed, _mm256_set1_epi32(static_cast<int>(0xffff0000U))));
      } else {
        const auto halves_to_float = [](__m256i lanes) {
          const __m256i halves =
              _mm256_permute4x64_epi64(_mm256_packus_epi32(lanes, lanes), 0b11011000);
          return _mm256_cvtph_ps(_mm256_castsi256_si128(halves));
        };
        even = halves_to_float(_mm256_and_si256(packed, _mm256_set1_epi32(0xffff)));
        odd = halves_to_float(_mm256_srli_epi32(packed, 16));
      }
      _mm256_store_ps(out.even[k] + 8 * half, even);
      _mm256_store_ps(out.odd[k] + 8 * half, odd);
    }
  }
}

/// One row of a floating dot, eight lanes at a time. False when a lane came out NaN: then the order
/// of the host's operands would show, and the caller redoes the row with explicit priorities.
template <float (*value)(std::uint16_t)>
bool float_row(TileFile& file, int dst, int src1, int src2, const Widened& b, std::size_t m) {
  const auto d = static_cast<std::size_t>(dst);
  const std::size_t pairs = file.config.rows[static_cast<std::size_t>(src2)];
  __m256 even[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
  __m256 odd[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
  for (std::size_t k = 0; k < pairs; ++k) {
    const __m256 a_even = _mm256_set1_ps(value(element(file, src1, m, 2 * k)));
    const __m256 a_odd = _mm256_set1_ps(value(element(file, src1, m, 2 * k + 1)));
    for (std::size_t half = 0; half < 2; ++half) {
      even[half] = _mm256_fmadd_ps(a_even, _mm256_load_ps(b.even[k] + 8 * half), even[half]);
      odd[half] = _mm256_fmadd_ps(a_odd, _mm256_load_ps(b.odd[k] + 8 * half), odd[half]);
    }
  }
  alignas(32) float result[16];
  bool clean = true;
  for (std::size_t half = 0; half < 2; ++half) {
    const __m256 old =
        _mm256_load_ps(reinterpret_cast<const float*>(file.data[d][m].data() + 32 * half));
    const __m256 total = _mm256_add_ps(old, _mm256_add_ps(even[half], odd[half]));
    clean &= _mm256_movemask_ps(_mm256_cmp_ps(total, total, _CMP_UNORD_Q)) == 0;
    _mm256_store_ps(result + 8 * half, total);
  }
  if (!clean) return false;
  // Lanes past colsb stay zero: src2 is zero there, and so was dst.
  std::memcpy(file.data[d][m].data(), result, file.config.colsb[d]);
  return true;
}

void float_dot(TileFile& file, Dot kind, int dst, int src1, int src2) {
  Widened b;
  widen(file, kind, src2, b);
  const int rows = file.config.rows[static_cast<std::size_t>(dst)];
  for (int row = 0; row < rows; ++row) {
    const auto m = static_cast<std::size_t>(row);
    const bool clean = kind == Dot::bf16 ? float_row<bf16_value>(file, dst, src1, src2, b, m)
                                         : float_row<fp16_value>(file, dst, src1, src2, b, m);
    if (!clean) dot_row_scalar(file, kind, dst, src1, src2, row);
  }
}

template <class A, class B>
void int_row(TileFile& file, int dst, int src1, int src2, std::size_t m) {
  const auto d = static_cast<std::size_t>(dst);
  const auto a = static_cast<std::size_t>(src1);
  const auto b = static_cast<std::size_t>(src2);
  std::uint32_t total[16];
  std::memcpy(total, file.data[d][m].data(), sizeof total);
  for (std::size_t k = 0; k < file.config.rows[b]; ++k) {
    for (std::size_t i = 0; i < 4; ++i) {
      const auto left = static_cast<std::int32_t>(static_cast<A>(file.data[a][m][4 * k + i]));
      for (std::size_t n = 0; n < 16; ++n) {
        // Wraps like the hardware: there is no saturation.
        total[n] += static_cast<std::uint32_t>(
            left * static_cast<std::int32_t>(static_cast<B>(file.data[b][k][4 * n + i])));
      }
    }
  }
  std::memcpy(file.data[d][m].data(), total, file.config.colsb[d]);
}

void int_dot_row(TileFile& file, Dot kind, int dst, int src1, int src2, std::size_t m) {
  using Signed = std::int8_t;
  using Unsigned = std::uint8_t;
  switch (kind) {
    case Dot::ss:
      return int_row<Signed, Signed>(file, dst, src1, src2, m);
    case Dot::su:
      return int_row<Signed, Unsigned>(file, dst, src1, src2, m);
    case Dot::us:
      return int_row<Unsigned, Signed>(file, dst, src1, src2, m);
    default:
      return int_row<Unsigned, Unsigned>(file, dst, src1, src2, m);
  }
}

}  // namespace

void dot_row_scalar(TileFile& file, Dot kind, int dst, int src1, int src2, int row) {
  const TileRounding rounding;
  const auto m = static_cast<std::size_t>(row);
  const auto d = static_cast<std::size_t>(dst);
  const auto value = kind == Dot::bf16 ? bf16_value : fp16_value;
  const std::size_t pairs = file.config.rows[static_cast<std::size_t>(src2)];
  for (std::size_t n = 0; n < file.config.colsb[d] / 4U; ++n) {
    float even = 0;
    float odd = 0;
    for (std::size_t k = 0; k < pairs; ++k) {
      even =
          fused(value(element(file, src1, m, 2 * k)), value(element(file, src2, k, 2 * n)), even);
      odd = fused(value(element(file, src1, m, 2 * k + 1)),
                  value(element(file, src2, k, 2 * n + 1)), odd);
    }
    float old = 0;
    std::memcpy(&old, file.data[d][m].data() + 4 * n, 4);
    const float total = sum(old, sum(even, odd));
    std::memcpy(file.data[d][m].data() + 4 * n, &total, 4);
  }
}

Fault dot(TileFile& file, Dot kind, int dst, int src1, int src2) {
  if (const Fault fault = check_dot(file, dst, src1, src2)) return fault;
  const TileRounding rounding;
  if (kind == Dot::bf16 || kind == Dot::fp16) {
    float_dot(file, kind, dst, src1, src2);
  } else {
    const std::size_t rows = file.config.rows[static_cast<std::size_t>(dst)];
    for (std::size_t m = 0; m < rows; ++m) int_dot_row(file, kind, dst, src1, src2, m);
  }
  file.config.start_row = 0;
  return {};
}

}  // namespace attest::amx
