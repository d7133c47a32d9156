#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "property_tests/generator_parts.hpp"

namespace attest {
namespace {

/// One layer shape of a published model (config.json of each on the Hugging Face hub).
struct Shape {
  std::string_view model;
  std::int64_t q_heads, kv_heads, dim, v_dim;
  double softcap;
  std::int64_t window;  ///< 0 = none
  bool sinks;
};

constexpr std::array shapes = {
    Shape{"Qwen3-235B at TP 2", 32, 2, 128, 128, 0, 0, false},
    Shape{"Qwen3-32B", 64, 8, 128, 128, 0, 0, false},
    Shape{"Qwen2.5-7B, a group of 7", 28, 4, 128, 128, 0, 0, false},
    Shape{"Llama-3.2-1B", 32, 8, 64, 64, 0, 0, false},
    Shape{"Gemma-2-9B, local layer", 16, 8, 256, 256, 50, 4096, false},
    Shape{"Gemma-2-27B, global layer", 32, 16, 128, 128, 50, 0, false},
    Shape{"Gemma-3-4B, local layer", 8, 4, 256, 256, 0, 1024, false},
    Shape{"gpt-oss-20b, sliding layer", 64, 8, 64, 64, 0, 128, true},
    Shape{"gpt-oss-20b, full layer", 64, 8, 64, 64, 0, 0, true},
    Shape{"OLMo-7B (MHA)", 32, 32, 128, 128, 0, 0, false},
    Shape{"Falcon-7B (MQA), heads rounded", 64, 1, 64, 64, 0, 0, false},
    Shape{"Phi-3-mini (MHA, odd head)", 32, 32, 96, 96, 0, 0, false},
    Shape{"Phi-2 (MHA, odd head)", 32, 32, 80, 80, 0, 0, false},
    Shape{"MiMo-V2-Flash (v narrower)", 64, 4, 192, 128, 0, 128, true},
};

/// One in eight layers keeps its head count; the others keep the group and one or two kv heads, or
/// four for MHA, so that a case costs milliseconds.
void scale_heads(Draw& draw, Model& model) {
  if (draw.chance(12)) return;
  const std::int64_t group = model.num_q_heads / model.num_kv_heads;
  const std::int64_t kept = std::min(model.num_kv_heads, group == 1 ? 4 : draw.between(1, 2));
  model.num_kv_heads = kept;
  model.num_q_heads = kept * group;
}

/// Windows of a few keys up to one that just covers the longest request, edges of tiles included.
std::optional<std::int64_t> draw_window(Draw& draw, std::int64_t max_kv) {
  const std::int64_t around = draw.pick({8, 16, 64, 128}) + draw.between(-1, 1);
  return std::min(draw.chance(75) ? around : draw.between(1, max_kv), max_kv);
}

/// bf16 where it is among the choices, most of the time: it is what models are served in.
Dtype draw_dtype(Draw& draw, std::span<const Dtype> choices) {
  const bool usual = std::find(choices.begin(), choices.end(), Dtype::bf16) != choices.end();
  if (choices.empty() || (usual && draw.chance(50))) return Dtype::bf16;
  return draw.pick(choices);
}

/// K and V are stored in q's dtype or in an fp8 one: no framework stores them in another float
/// type.
void draw_dtypes(Draw& draw, const GeneratorOptions& options, Model& model) {
  const bool takes_fp8 = options.signature == Signature::unified ||
                         options.signature == Signature::mla_decode ||
                         options.signature == Signature::paged_ragged;
  Capabilities everything;
  everything.q_dtypes = {Dtype::bf16, Dtype::f16};
  everything.kv_dtypes = {Dtype::bf16, Dtype::f16};
  if (takes_fp8)
    everything.kv_dtypes.insert(everything.kv_dtypes.end(),
                                {Dtype::fp8_e4m3fn, Dtype::fp8_e4m3fnuz});
  const Capabilities& can = options.capabilities ? *options.capabilities : everything;

  model.q_dtype = draw_dtype(draw, can.q_dtypes);
  std::vector<Dtype> kv;
  for (const Dtype dtype : can.kv_dtypes) {
    const bool fits =
        dtype == model.q_dtype || (is_fp8(dtype) && takes_fp8 && !is_fp8(model.q_dtype));
    if (fits) kv.push_back(dtype);
  }
  model.kv_dtype = kv.empty() || draw.chance(50) ? model.q_dtype : draw.pick(kv);
  model.out_dtype = is_fp8(model.q_dtype) ? Dtype::bf16 : model.q_dtype;

  // Those of q and K keep scores near unit variance: flat softmaxes hide what they weigh.
  constexpr std::array score_scales = {0.75, 1.0, 1.5};
  constexpr std::array value_scales = {0.0625, 0.5, 1.0, 2.0};
  if (is_fp8(model.q_dtype)) model.q_descale = draw.pick(score_scales);
  if (!is_fp8(model.kv_dtype)) return;
  model.k_descale = draw.pick(score_scales);
  // One latent row is both K and V, so it has one scale.
  model.v_descale = model.mla ? *model.k_descale : draw.pick(value_scales);
}

bool has_mla(Draw& draw, const GeneratorOptions& options) {
  return options.signature == Signature::mla_decode ||
         (options.signature == Signature::decode && draw.chance(8));
}

void make_mla(Draw& draw, Model& model) {
  model.mla = true;
  model.num_kv_heads = 1;
  model.num_q_heads = draw.chance(5) ? 128 : 16;  // AITER's kernels take multiples of 16
  model.head_dim = 576;
  model.v_head_dim = 512;
  // DeepSeek-V3: 1 / sqrt(192), times the square of its YaRN factor when the context is extended.
  model.softmax_scale = 1 / std::sqrt(192.0) * draw.pick({1.0, 1.8738});
}

/// What a calling convention has arguments for, where no backend narrows it.
Capabilities all_of(Signature signature) {
  Capabilities can{.signature = signature, .tree_mask = true};
  if (signature == Signature::paged_ragged) {
    can.window = can.sinks = can.distinct_v_head_dim = false;
  }
  if (signature == Signature::vllm_cpu) can.distinct_v_head_dim = false;
  return can;
}

}  // namespace

Model draw_model(Draw& draw, const GeneratorOptions& options, const BatchPlan& plan) {
  const Capabilities all = all_of(options.signature);
  const Capabilities& can = options.capabilities ? *options.capabilities : all;
  Model model;
  if (has_mla(draw, options)) {
    make_mla(draw, model);
    draw_dtypes(draw, options, model);
    return model;
  }
  const Shape& shape = draw.pick(shapes);
  model.num_q_heads = shape.q_heads;
  model.num_kv_heads = shape.kv_heads;
  scale_heads(draw, model);
  model.head_dim = draw.chance(40) && shape.dim == shape.v_dim && shape.dim > 96 ? 64 : shape.dim;
  model.v_head_dim = shape.dim == shape.v_dim ? model.head_dim : shape.v_dim;
  // The CPU extend kernels take multiples of 32 (docs/contracts.md, "extend").
  if (options.signature == Signature::extend && model.head_dim % 32 != 0) {
    model.head_dim = model.v_head_dim = 96;
  }
  if (!can.distinct_v_head_dim) model.v_head_dim = model.head_dim;
  model.softmax_scale = 1 / std::sqrt(static_cast<double>(model.head_dim));
  if (draw.chance(10)) model.softmax_scale = draw.pick({0.0625, 0.0884, 0.25});

  // Features come with the shape, and now and then without, so that they also meet each other.
  if (can.softcap && (shape.softcap > 0 || draw.chance(5)))
    model.softcap = draw.pick({30.0, 50.0, 5.0});
  if (can.window && !plan.tree && (shape.window > 0 || draw.chance(10))) {
    model.window = draw_window(draw, options.max_kv);
  }
  model.sinks = can.sinks && (shape.sinks || draw.chance(5));
  draw_dtypes(draw, options, model);
  return model;
}

}  // namespace attest
