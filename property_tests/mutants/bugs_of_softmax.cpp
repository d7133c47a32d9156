// Bugs of caps, sinks, scales and of what meets the probabilities.

#include "property_tests/mutants/handed_bugs.hpp"

namespace attest {
namespace {

using enum BugClass;
using enum Site;

// One row each: id, source, what goes wrong, class, site, kernels, what stands for it, why not
// numbers.
constexpr HandedBug rows[] = {
    {"ik-2087-tile-sink", "ikawrakow/ik_llama.cpp#2087",
     "a kernel takes the sinks and never uses them", numeric, kernel_math,
     "unified, extend, decode", "faulty-sink_missing, faulty-hip_sink_missing", ""},
    {"imp-1346-reduce-null", "kekzl/imp#1346", "the reduction is launched without the sinks",
     numeric, launcher, "HIP unified",
     "faulty-hip_sink_missing_in_the_reduction, metadata:sinks_missing", ""},
    {"sgl-38525-plan-cap", "sgl-project/sglang#38525",
     "the cap is not part of the plan that the kernel was made for", numeric, wrapper,
     "unified, extend, decode", "faulty-softcap_missing, metadata:softcap_missing", ""},
    {"vmetal-665-cap-const", "vllm-project/vllm-metal#665",
     "the call passes a literal 0 for the cap", numeric, wrapper, "unified, extend, decode",
     "metadata:softcap_missing, faulty-softcap_missing", ""},
    {"fi-1023-positional", "flashinfer-ai/flashinfer#1023", "scales passed by position are lost",
     numeric, wrapper, "unified, mla_decode", "metadata:k_descale_missing, faulty-descales_missing",
     ""},
    {"sgl-26852-vfallback", "sgl-project/sglang#26852", "V's scale falls back to K's", numeric,
     wrapper, "unified", "faulty-descale_of_v_is_ks", ""},
    {"sgl-34765-mla-scale", "sgl-project/sglang#34765", "MLA scales the scores and not the values",
     numeric, kernel_math, "mla_decode", "faulty-descale_of_v_missing.mla_decode@cpu", ""},
    {"vllm-56726-stale-scale", "vllm-project/vllm#56726",
     "scales are applied to a cache that is not quantised", rule_only, wrapper, "unified",
     "rule:descales.are_the_layers",
     "the call has no value for such a scale: the layer has none, and the rule says so"},
    {"sgl-25180-amx-bn", "sgl-project/sglang#25180",
     "rows of P are written a block apart and read a padded width apart", numeric, kernel_math,
     "AMX", "faulty-probabilities_read_at_the_padded_width", ""},
    {"fa-2374-v-tail", "Dao-AILab/flash-attention#2374",
     "V past the length is loaded to the end of the tile and 0 * NaN reaches the output", numeric,
     kernel_math, "HIP unified", "faulty-hip_v_loaded_to_the_end_of_the_page", ""},
    {"vllm-936-pa-nan", "vllm-project/vllm#936",
     "V of the last page's unfilled slots is not cleared and 0 * NaN reaches the output", numeric,
     kernel_math, "HIP unified",
     "faulty-hip_v_loaded_to_the_end_of_the_page, faulty-reads_past_kv_len", ""},
    {"sgl-20220-softmax-max", "sgl-project/sglang#20220",
     "the running maximum forgets the blocks before", numeric, kernel_math, "HIP unified",
     "faulty-hip_maximum_of_one_tile", ""},
};

}  // namespace

std::span<const HandedBug> bugs_of_softmax() { return rows; }

}  // namespace attest
