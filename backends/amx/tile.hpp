#pragma once

#include <cstddef>
#include <cstdint>

namespace attest::amx {

// The AMX instructions as functions. Not the compiler's intrinsics: those of g++ 12 declare too
// little of the memory that they read (_tile_loadconfig 8 of 64 bytes, _tile_loadd nothing), so
// stores that should precede them are dropped at -O1 and up (GCC PR 114098, fixed in 14). The
// pointer operand makes a local array escape, the clobber keeps its stores. tile_test.cpp fails
// without either.

inline void tile_loadconfig(const void* config) {
  __asm__ volatile("ldtilecfg (%0)" ::"r"(config) : "memory");
}

inline void tile_storeconfig(void* config) {
  __asm__ volatile("sttilecfg (%0)" ::"r"(config) : "memory");
}

inline void tile_release() { __asm__ volatile("tilerelease" ::: "memory"); }

template <int tile>
void tile_zero() {
  __asm__ volatile("tilezero %%tmm%c0" ::"i"(tile));
}

/// Row r of the tile is the configured number of bytes at base + r * stride.
template <int tile>
void tile_load(const void* base, std::ptrdiff_t stride) {
  __asm__ volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(base), "r"(stride), "i"(tile) : "memory");
}

template <int tile>
void tile_store(void* base, std::ptrdiff_t stride) {
  __asm__ volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(base), "r"(stride), "i"(tile) : "memory");
}

/// dst (rows x n float) += src1 (rows x 2k bf16) * src2 (k x n pairs of bf16, VNNI).
template <int dst, int src1, int src2>
void tile_dot_bf16() {
  __asm__ volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(dst), "i"(src1), "i"(src2));
}

template <int dst, int src1, int src2>
void tile_dot_int8() {
  __asm__ volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(dst), "i"(src1), "i"(src2));
}

}  // namespace attest::amx
