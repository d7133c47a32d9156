#include "contracts/rules/launch.hpp"

#include <algorithm>
#include <string>

#include "contracts/signatures/unified_launch.hpp"

namespace attest {
namespace {

// Below this many keys one program per (q block, kv head) is as fast, see the source.
constexpr std::int64_t long_context = 1024;
// Longer queries fill the machine by themselves.
constexpr std::int64_t short_query = 32;

void splits_a_long_context(const UnifiedCall& call, const Truth& truth, Report& report) {
  if (!call.launch || call.launch->form == "3d") return;
  const Problem& p = truth.problem;
  if (p.max_kv_len() < long_context || p.max_new_tokens() > short_query) return;
  const Launch wanted = unified_launch(call);
  if (wanted.form != "3d" || !split_tile_fits_page(call)) return;
  report.add(
      "launch.form",
      call.launch->form + ", one program walks all " + std::to_string(p.max_kv_len()) + " keys",
      "3d with " + std::to_string(wanted.kv_splits) +
          " KV segments: the grid does not fill the GPU");
}

void page_fits_the_split_tile(const UnifiedCall& call, const Truth&, Report& report) {
  if (!call.launch || call.launch->form != "3d" || split_tile_fits_page(call)) return;
  report.add("launch.form", "3d with pages of " + std::to_string(call.k.size(1)),
             "2d: the split form's tile of " + std::to_string(split_tile(call)) +
                 " keys is no multiple of the page");
}

void shares_each_key_load(const UnifiedCall& call, const Truth& truth, Report& report) {
  const Model& m = truth.problem.model;
  const std::int64_t group = m.num_q_heads / m.num_kv_heads;
  if (!call.launch || call.launch->queries_per_kv >= group) return;
  report.add("launch.queries_per_kv", std::to_string(call.launch->queries_per_kv),
             std::to_string(group) + ", the q heads of one kv head");
}

constexpr Rule rules[] = {
    {.id = "launch.splits_a_long_context",
     .says = "a short query over a long context is launched with split-KV when the grid is small",
     .why = "without it a handful of programs read the whole cache: some 40 to 400 times slower, "
            "with the same numbers",
     .source = "sgl-project/sglang#30105",
     .severity = Severity::slow,
     .unified = splits_a_long_context},
    {.id = "launch.page_size_fits_the_split_tile",
     .says = "the split form is launched only with pages that its tile divides or fits",
     .why = "its host code asserts so; a page of 48 fails",
     .source = "ROCm/aiter#2393",
     .severity = Severity::fault,
     .unified = page_fits_the_split_tile},
    {.id = "launch.shares_each_key_load",
     .says = "one load of a key serves all q heads of its kv head",
     .why = "a launch that derived fewer, from expanded heads, reads the cache once for each",
     .source = "sgl-project/sglang#30105",
     .severity = Severity::slow,
     .unified = shares_each_key_load},
};

}  // namespace

std::span<const Rule> launch_rules() { return rules; }

}  // namespace attest
