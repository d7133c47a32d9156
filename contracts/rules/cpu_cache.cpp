#include "contracts/rules/cpu_cache.hpp"

#include <string>

#include "contracts/rules/finding_text.hpp"
#include "contracts/signatures/vllm_cpu.hpp"

namespace attest {
namespace {

/// The kernel has strides for blocks and heads, K's for both caches, and packs what lies inside.
void blocks_are_dense(const VllmCpuCall& call, const Truth&, Report& report) {
  const std::int64_t dim = call.query.size(2);
  const auto expect = [&](std::string_view name, const TensorMeta& cache) {
    if (cache.size(3) != dim) {
      report.add(std::string(name) + ".shape[3]", std::to_string(cache.size(3)),
                 std::to_string(dim) + ", the query's head size");
    } else if ((cache.size(2) > 1 && cache.stride(2) != dim) || (dim > 1 && cache.stride(3) != 1)) {
      report.add(std::string(name) + ".strides[2], [3]",
                 std::to_string(cache.stride(2)) + " and " + std::to_string(cache.stride(3)),
                 std::to_string(dim) + " and 1: a head's tokens lie side by side in their block");
    }
  };
  expect("key_cache", call.key_cache);
  expect("value_cache", call.value_cache);
}

void v_has_ks_strides(const VllmCpuCall& call, const Truth&, Report& report) {
  for (const std::size_t d : {std::size_t{0}, std::size_t{1}}) {
    const std::int64_t k = call.key_cache.stride(d);
    const std::int64_t v = call.value_cache.stride(d);
    if (k == v || call.value_cache.size(d) <= 1) continue;
    report.add("value_cache.stride(" + std::to_string(d) + ")", std::to_string(v),
               std::to_string(k) + ", key_cache's: one stride addresses both");
  }
}

void blocks_fit_the_form(const VllmCpuCall& call, const Truth&, Report& report) {
  const std::int64_t multiple = vllm_cpu_alignment(call.isa);
  const std::int64_t block = call.key_cache.size(2);
  if (block >= 1 && block % multiple == 0) return;
  report.add("key_cache.shape[2]", std::to_string(block),
             "a multiple of " + std::to_string(multiple) + " tokens" +
                 (call.isa.empty() ? "" : " for the form " + call.isa));
}

void form_fits_the_layer(const VllmCpuCall& call, const Truth&, Report& report) {
  if (call.isa.empty()) return;
  if (call.isa != "amx" && call.isa != "vec" && call.isa != "vec16") {
    report.add("isa", call.isa, "amx, vec or vec16");
    return;
  }
  if (call.isa == "amx" && call.query.dtype != Dtype::bf16) {
    report.add("isa", "amx over " + std::string(name(call.query.dtype)), "vec: amx is for bf16");
  }
  if (call.isa != "vec16" && call.query.size(2) % 32 != 0) {
    report.add("isa", call.isa + " for heads of " + std::to_string(call.query.size(2)),
               "vec16: the others take heads in steps of 32");
  }
}

void head_size_has_a_kernel(const VllmCpuCall& call, const Truth&, Report& report) {
  if (vllm_cpu_takes_head_dim(call.query.size(2))) return;
  report.add("query.shape[2]", std::to_string(call.query.size(2)),
             "32, 64, 80, 96, 112, 128, 160, 192, 224, 256 or 512");
}

void types_are_one(const VllmCpuCall& call, const Truth&, Report& report) {
  const Dtype q = call.query.dtype;
  const bool one = call.key_cache.dtype == q && call.value_cache.dtype == q;
  if (one && call.output.dtype == q) return;
  report.add("key_cache.dtype", std::string(name(call.key_cache.dtype)),
             std::string(name(q)) + ", the query's, for both caches and the output");
}

void dtype_word_is_auto(const VllmCpuCall& call, const Truth&, Report& report) {
  if (call.kv_cache_dtype == "auto") return;
  report.add("kv_cache_dtype", call.kv_cache_dtype,
             "auto, the cache is " + std::string(name(call.key_cache.dtype)));
}

constexpr Rule rules[] = {
    {.id = "cache.blocks_are_dense",
     .says = "inside a block a head's tokens lie side by side, head_dim elements each",
     .why = "the kernel has strides for blocks and heads only and packs what lies between: other "
            "views are read as if they were dense",
     .source = "vllm-project/vllm csrc/cpu/cpu_attn.cpp: cache_num_blocks_stride, "
               "cache_num_kv_heads_stride",
     .vllm_cpu = blocks_are_dense},
    {.id = "cache.v_has_ks_strides",
     .says = "blocks and heads of value_cache lie as far apart as key_cache's",
     .why = "the kernel is handed key_cache's strides alone and reads V by them too",
     .source = "vllm-project/vllm csrc/cpu/cpu_attn.cpp: key_cache.stride(0), key_cache.stride(1)",
     .vllm_cpu = v_has_ks_strides},
    {.id = "cache.blocks_fit_the_form",
     .says = "a block holds a multiple of 32 tokens (amx, vec) or of 16 (vec16)",
     .why = "the kernel takes keys in groups of that many and refuses other blocks",
     .source = "vllm-project/vllm csrc/cpu/cpu_attn.cpp: BlockSizeAlignment; "
               "vllm/v1/attention/backends/cpu_attn.py: _get_attn_isa",
     .severity = Severity::fault,
     .vllm_cpu = blocks_fit_the_form},
    {.id = "isa.fits_the_layer",
     .says = "scheduler metadata is built for a form that takes the layer: amx for bf16, amx and "
             "vec for heads in steps of 32",
     .why = "the kernel runs the form that the metadata names, over a cache packed for another",
     .source = "vllm-project/vllm vllm/v1/attention/backends/cpu_attn.py: _get_attn_isa",
     .severity = Severity::fault,
     .vllm_cpu = form_fits_the_layer},
    {.id = "head_dim.fits_the_cpu_kernels",
     .says = "the head size is one that a kernel is instantiated for",
     .why = "the dispatch refuses the call",
     .source = "vllm-project/vllm vllm/v1/attention/backends/cpu_attn.py: "
               "get_supported_head_sizes",
     .severity = Severity::fault,
     .vllm_cpu = head_size_has_a_kernel},
    {.id = "dtypes.cache_and_output_are_qs",
     .says = "both caches and the output of a vllm_cpu call have the query's element type",
     .why = "the kernel is compiled for the query's type and takes raw pointers to the rest",
     .source = "vllm-project/vllm csrc/cpu/cpu_attn.cpp: query.scalar_type()",
     .vllm_cpu = types_are_one},
    {.id = "kv_cache_dtype.is_auto",
     .says = "kv_cache_dtype is auto for a cache of the query's type",
     .why = "another word makes the kernel refuse the cache or read it as fp8 bytes",
     .source = "vllm-project/vllm csrc/cpu/cpu_attn.cpp: parse_fp8_kv_dtype",
     .severity = Severity::fault,
     .vllm_cpu = dtype_word_is_auto},
};

}  // namespace

std::span<const Rule> cpu_cache_rules() { return rules; }

}  // namespace attest
