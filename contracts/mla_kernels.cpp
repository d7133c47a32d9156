#include "contracts/mla_kernels.hpp"

#include <algorithm>
#include <array>

namespace attest {
namespace {

constexpr std::int64_t any = 0;

// gpu, fp8 q, fp8 cache, heads, persistent, longest
constexpr MlaKernel kernels[] = {
    {"gfx942", true, true, 8, false, 1},       {"gfx950", true, true, 8, false, 1},
    {"gfx950", true, true, 8, true, 4},        {"gfx942", true, true, 16, false, 4},
    {"gfx942", true, true, 16, true, 4},       {"gfx950", true, true, 16, false, 4},
    {"gfx950", true, true, 16, true, any},  // folded to 32 heads
    {"gfx950", true, true, 32, false, any},    {"gfx950", true, true, 32, true, any},
    {"gfx942", true, true, 64, true, any},     {"gfx950", true, true, 64, true, any},
    {"gfx942", true, true, 128, false, any},   {"gfx942", true, true, 128, true, any},
    {"gfx950", true, true, 128, false, any},   {"gfx950", true, true, 128, true, any},
    {"gfx942", false, true, 16, true, 4},      {"gfx950", false, true, 16, true, 4},
    {"gfx942", false, false, 8, false, 2},     {"gfx950", false, false, 8, false, 2},
    {"gfx942", false, false, 16, false, 8},    {"gfx942", false, false, 16, true, 4},
    {"gfx950", false, false, 16, false, 8},    {"gfx950", false, false, 16, true, any},
    {"gfx942", false, false, 128, false, any}, {"gfx942", false, false, 128, true, any},
    {"gfx950", false, false, 128, false, any}, {"gfx950", false, false, 128, true, any},
};

}  // namespace

std::span<const MlaKernel> mla_kernels() { return kernels; }

MlaSupport mla_support(Dtype q, Dtype cache, std::int64_t heads, std::int64_t length) {
  MlaSupport support;
  for (const MlaKernel& k : kernels) {
    if (k.fp8_q != is_fp8(q) || k.fp8_cache != is_fp8(cache) || k.heads != heads) continue;
    support.known = true;
    if (length < 1 || (k.longest != any && length > k.longest)) continue;
    if (!support.where.empty()) support.where += ", ";
    support.where += std::string(k.gpu) + (k.persistent ? " with work lists" : "");
  }
  return support;
}

bool mla_fp8_launch_is_listed(std::int64_t heads, std::int64_t length) {
  constexpr std::array<std::int64_t, 10> listed = {8, 16, 24, 32, 48, 64, 128, 256, 384, 512};
  std::int64_t rows = 0;
  return !__builtin_mul_overflow(heads, length, &rows) &&
         std::find(listed.begin(), listed.end(), rows) != listed.end();
}

}  // namespace attest
