#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "property_tests/mutants/policy.hpp"

namespace attest {
namespace {

constexpr double epsilon_f32 = std::numeric_limits<float>::epsilon();

/// Share of elements with |got - expected| > atol + rtol |expected|; NaN is one.
double missed_share(std::span<const double> got, std::span<const double> expected, double atol,
                    double rtol) {
  std::size_t missed = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const bool close = std::abs(got[i] - expected[i]) <= atol + rtol * std::abs(expected[i]);
    missed += close ? 0 : 1;
  }
  return got.empty() ? 1 : static_cast<double>(missed) / static_cast<double>(got.size());
}

std::string refuse_share(double share, double allowed) {
  if (share <= allowed) return "";
  return std::to_string(share * 100) + " % of the elements miss, " + std::to_string(allowed * 100) +
         " % may";
}

double largest_error(std::span<const double> got, std::span<const double> expected) {
  double largest = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double error = std::abs(got[i] - expected[i]);
    if (std::isnan(error)) return std::numeric_limits<double>::infinity();
    largest = std::max(largest, error);
  }
  return largest;
}

std::string aiter_unified(const PolicyView& v) {
  return refuse_share(missed_share(v.got, v.expected, 1.5e-2, 1e-2), 0.01);
}
std::string aiter_pa_mtp(const PolicyView& v) {
  return refuse_share(missed_share(v.got, v.expected, 1e-2, 1e-2), 0.05);
}
std::string vllm_unified(const PolicyView& v) {
  return refuse_share(missed_share(v.got, v.naive, 1.5e-2, 1e-2), 0);
}
std::string one_percent(const PolicyView& v) {
  return refuse_share(missed_share(v.got, v.expected, 1e-2, 1e-2), 0);
}
std::string flashinfer(const PolicyView& v) {
  return refuse_share(missed_share(v.got, v.expected, 1e-3, 1e-3), 0);
}
std::string cudnn(const PolicyView& v) {
  return refuse_share(missed_share(v.got, v.expected, 2e-2, 2e-2), 0);
}

std::string sglang_decode(const PolicyView& v) {
  double dot = 0, a = 0, b = 0;
  for (std::size_t i = 0; i < v.got.size(); ++i) {
    dot += v.got[i] * v.expected[i];
    a += v.got[i] * v.got[i];
    b += v.expected[i] * v.expected[i];
  }
  const double cosine = dot / std::max(std::sqrt(a * b), 1e-8);
  if (!(cosine > 0.99)) return "cosine " + std::to_string(cosine);
  return refuse_share(missed_share(v.got, v.expected, 3e-2, 1e-6), 0);
}

std::string flash_attention(const PolicyView& v) {
  const double limit = 2 * largest_error(v.naive, v.expected) + 1e-5;
  const double error = largest_error(v.got, v.expected);
  if (error <= limit) return "";
  return "largest error " + std::to_string(error) + ", limit " + std::to_string(limit);
}

std::string onednn(const PolicyView& v) {
  const double threshold = v.unit_roundoff < 1e-3 ? 1.466e-3 : 1.0 / 128;
  double largest = 0, square = 0, error_square = 0, bias = 0;
  for (const double e : v.expected) largest = std::max(largest, std::abs(e));
  for (std::size_t i = 0; i < v.got.size(); ++i) {
    const double error = v.got[i] - v.expected[i];
    const double limit = std::min(threshold * v.abs_v[i] + 64 * epsilon_f32 * largest, 0.03);
    if (!(std::abs(error) <= limit)) return "element off by " + std::to_string(error);
    square += v.expected[i] * v.expected[i];
    error_square += error * error;
    bias += error;
  }
  const auto count = static_cast<double>(std::max<std::size_t>(v.got.size(), 1));
  if (square > 0 && !(std::sqrt(error_square / square) <= 8 * threshold)) return "L2 too large";
  if (!(std::abs(bias / count) <= 0.5 * threshold * largest)) return "a mean bias";
  return "";
}

std::string ggml(const PolicyView& v) {
  double square = 0, error_square = 0;
  for (std::size_t i = 0; i < v.got.size(); ++i) {
    error_square += (v.got[i] - v.expected[i]) * (v.got[i] - v.expected[i]);
    square += v.expected[i] * v.expected[i];
  }
  const double nmse = error_square / square;
  return nmse <= 5e-4 ? "" : "normalised squared error " + std::to_string(nmse);
}

constexpr std::array policies = {
    Policy{.name = "aiter-unified",
           .suite = "AITER, unified attention",
           .source = "ROCm/aiter op_tests/triton_tests/attention/test_unified_attention.py",
           .data = "N(0, 1)",
           .rule = "atol 1.5e-2, rtol 1e-2; 1 % of the elements may miss",
           .recipe = Recipe::normal,
           .refuses = aiter_unified},
    Policy{.name = "aiter-pa-mtp",
           .suite = "AITER, paged attention of several tokens",
           .source = "ROCm/aiter op_tests/test_pa_mtp.py",
           .data = "uniform on (-1, 1)",
           .rule = "atol 1e-2, rtol 1e-2; 5 % of the elements may miss",
           .recipe = Recipe::uniform,
           .refuses = aiter_pa_mtp},
    Policy{.name = "vllm-unified",
           .suite = "vLLM, Triton unified attention",
           .source = "vllm-project/vllm tests/kernels/attention/test_triton_unified_attention.py, "
                     "ref_paged_attn",
           .data = "N(0, 1)",
           .rule = "atol 1.5e-2, rtol 1e-2 against an implementation in the same precision",
           .recipe = Recipe::normal,
           .needs_naive = true,
           .refuses = vllm_unified},
    Policy{.name = "sglang-extend",
           .suite = "SGLang, CPU extend",
           .source = "sgl-project/sglang test/srt/cpu/test_extend.py",
           .data = "N(0, 1), q times 20",
           .rule = "atol 1e-2, rtol 1e-2",
           .recipe = Recipe::normal_20,
           .refuses = one_percent},
    Policy{.name = "sglang-decode",
           .suite = "SGLang, CPU decode",
           .source = "sgl-project/sglang test/srt/cpu/test_decode.py",
           .data = "N(0, 1)",
           .rule = "cosine of the whole output above 0.99, and atol 3e-2, rtol 1e-6",
           .recipe = Recipe::normal,
           .refuses = sglang_decode},
    Policy{.name = "ck-fmha",
           .suite = "Composable Kernel, fmha example in bf16",
           .source = "ROCm/composable_kernel example/ck_tile/01_fmha, get_elimit of bf16",
           .data = "uniform on (0, 1)",
           .rule = "atol 1e-2, rtol 1e-2",
           .recipe = Recipe::positive,
           .refuses = one_percent},
    Policy{.name = "flash-attention",
           .suite = "FlashAttention",
           .source = "Dao-AILab/flash-attention tests/test_flash_attn.py",
           .data = "N(0, 1)",
           .rule = "largest error at most twice that of an implementation in the same precision, "
                   "plus 1e-5",
           .recipe = Recipe::normal,
           .needs_naive = true,
           .refuses = flash_attention},
    Policy{.name = "flashinfer",
           .suite = "FlashInfer, batch decode in fp16",
           .source = "flashinfer-ai/flashinfer tests/test_batch_decode_kernels.py",
           .data = "N(0, 1)",
           .rule = "atol 1e-3, rtol 1e-3",
           .recipe = Recipe::normal,
           .dtype = Dtype::f16,
           .refuses = flashinfer},
    Policy{.name = "onednn-sdpa",
           .suite = "oneDNN, sdpa",
           .source = "uxlfoundation/oneDNN tests/gtests/internals/test_sdpa.cpp",
           .data = "small integers",
           .rule = "per element min(t sum p |v| + 64 eps32 max, 0.03), t = 1.466e-3 (f16) or 2^-7 "
                   "(bf16); L2 8 t; mean bias 0.5 t max",
           .recipe = Recipe::small_int,
           .refuses = onednn},
    Policy{.name = "ggml",
           .suite = "ggml, test-backend-ops",
           .source = "ggml-org/llama.cpp tests/test-backend-ops.cpp, test_flash_attn_ext",
           .data = "uniform on (-1, 1)",
           .rule = "normalised squared error of the whole tensor at most 5e-4",
           .recipe = Recipe::uniform,
           .refuses = ggml},
    Policy{.name = "cudnn-sdpa",
           .suite = "cudnn-frontend, sdpa",
           .source = "NVIDIA/cudnn-frontend test/python, sdpa tests",
           .data = "small integers, most of them 0",
           .rule = "atol 2e-2, rtol 2e-2",
           .recipe = Recipe::sparse_int,
           .refuses = cudnn},
};

}  // namespace

std::span<const Policy> all_policies() { return policies; }

const Policy* find_policy(std::string_view name) {
  for (const Policy& policy : policies) {
    if (policy.name == name) return &policy;
  }
  return nullptr;
}

}  // namespace attest
