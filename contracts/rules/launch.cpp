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

/// CK's batch prefill walks all keys of a request in one program a q head and 128 rows; it has no
/// form that splits them.
void splits_a_long_context(const BatchPrefillCall& call, const Truth& truth, Report& report) {
  const Problem& p = truth.problem;
  // A capture's rows are short, what its graph is for is not.
  const std::int64_t keys =
      p.path == Path::capture ? std::max(p.max_kv_len(), call.max_seqlen_k) : p.max_kv_len();
  if (keys < long_context || p.max_new_tokens() > short_query) return;
  if (p.max_new_tokens() == 0 || call.window_size[0] >= 0) return;
  const auto requests = static_cast<std::int64_t>(p.requests.size());
  const std::int64_t heads = call.q.size(1);
  constexpr std::int64_t filled = 4 * mi300x_compute_units;
  if (requests >= filled || heads >= filled || requests * heads > filled) return;
  report.add(
      "the kernel",
      "mha_batch_prefill_func, whose programs each walk all " + std::to_string(keys) + " keys",
      "one with split-KV, as unified_attention: " + std::to_string(requests * heads) +
          " programs do not fill the GPU");
}

/// "1048576 bytes of K and V".
std::string bytes_of(const UnifiedCall& call, const Launch& launch) {
  return std::to_string(kv_bytes_requested(call, launch)) + " bytes of K and V";
}

void reads_only_the_window(const UnifiedCall& call, const Truth& truth, Report& report) {
  if (!call.launch || call.launch->form != "3d" || call.window_size[0] < 0) return;
  const Problem& p = truth.problem;
  if (p.max_kv_len() < long_context) return;
  Launch pruned = *call.launch;
  pruned.form = "2d";
  const std::int64_t all = kv_bytes_requested(call, *call.launch);
  const std::int64_t shown = kv_bytes_requested(call, pruned);
  if (shown <= 0 || all < 2 * shown) return;
  report.add("launch.form", "3d over the whole prefix, " + bytes_of(call, *call.launch),
             "2d, which begins at the window: " + bytes_of(call, pruned));
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
  Launch shared = *call.launch;
  shared.queries_per_kv = group;
  report.add("launch.queries_per_kv",
             std::to_string(call.launch->queries_per_kv) + ", " + bytes_of(call, *call.launch),
             std::to_string(group) + ", the q heads of one kv head: " + bytes_of(call, shared));
}

constexpr Rule rules[] = {
    {.id = "launch.splits_a_long_context",
     .says = "a short query over a long context is launched with split-KV when the grid is small",
     .why = "without it a handful of programs read the whole cache: some 40 to 400 times slower, "
            "with the same numbers",
     .source = "sgl-project/sglang#30105",
     .severity = Severity::slow,
     .unified = splits_a_long_context,
     .batch_prefill = splits_a_long_context},
    {.id = "launch.reads_only_the_window",
     .says =
         "a windowed layer over a long context is launched in the form that skips what is hidden",
     .why = "the split form walks the whole prefix: as many times more bytes as the window fits "
            "into the context, and pages that an allocator has freed are read",
     .source = "ROCm/aiter unified_attention.py: use_2d_kernel keeps windows off the split form, "
               "kernel_unified_attention_3d has no pruning",
     .severity = Severity::slow,
     .unified = reads_only_the_window},
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
