#include "contracts/rules/broken_parts.hpp"

namespace attest {
namespace {

Problem windowed() {
  Problem p = uneven_verify();
  p.model.window = 8;
  return p;
}

Problem capped() {
  Problem p = uneven_verify();
  p.model.softcap = 30;
  return p;
}

Problem with_sinks() {
  Problem p = uneven_verify();
  p.model.sinks = true;
  return p;
}

Problem fp8_cache() {
  Problem p = uneven_verify();
  p.model.kv_dtype = Dtype::fp8_e4m3fn;
  p.model.k_descale = 0.5;
  p.model.v_descale = 2;
  return p;
}

Problem fp8_mla() {
  Problem p = mla_verify();
  p.model.q_dtype = p.model.kv_dtype = Dtype::fp8_e4m3fn;
  p.model.q_descale = 0.5;
  p.model.k_descale = p.model.v_descale = 2;
  return p;
}

/// Layers and batches that the signature has no argument for: the call leaves it out.
void leave_out(BrokenCalls& calls) {
  Problem tree = sample_problem(Mode::target_verify, {{20, 3}});
  const Problem chain = tree;
  tree.requests[0].tree_parent = {-1, 0, 0};
  calls.unsaid("draft_tree.is_a_chain", "a tree of two branches in causal order", tree, chain);
  Problem mla_tree = sample_mla_problem(Mode::target_verify, {{20, 3}});
  const Problem mla_chain = mla_tree;
  mla_tree.requests[0].tree_parent = {-1, 0, 0};
  calls.unsaid("draft_tree.is_a_chain", "a tree of two branches in causal order", mla_tree,
               mla_chain);
  Problem text = sample_problem(Mode::decode, {{20, 1}});
  Problem encoder = text;
  encoder.model.cross_attention = true;
  encoder.requests[0].encoder_tokens = 7;
  calls.unsaid("cross_attention.has_a_kernel", "a cross attention layer over its own text", encoder,
               text);
  Problem mla_window = mla_verify();
  mla_window.model.window = 8;
  calls.unsaid("window.is_the_layers", "a windowed layer on a kernel without windows", mla_window,
               mla_verify());
  Problem mla_sinks = mla_verify();
  mla_sinks.model.sinks = true;
  calls.unsaid("sinks.are_the_layers", "a layer with sinks on a kernel without them", mla_sinks,
               mla_verify());
  Problem mla_cap = mla_verify();
  mla_cap.model.softcap = 30;
  calls.unsaid("softcap.is_the_layers", "a capped layer on a kernel without a cap", mla_cap,
               mla_verify());
}

void break_scalars(BrokenCalls& calls) {
  calls.unified("softmax_scale.is_the_layers", "1 / sqrt(head_dim) instead of the layer's scale",
                uneven_verify(), [](UnifiedCall& c) { c.softmax_scale = 0.1767766952966369; });
  calls.mla("softmax_scale.is_the_layers", "the scale of the uncompressed heads", mla_verify(),
            [](MlaDecodeCall& c) { c.sm_scale = 0.0416666666666667; });
  calls.unified("softcap.is_the_layers", "decode passes no cap", capped(),
                [](UnifiedCall& c) { c.softcap = 0; });
  calls.mla("softcap.is_the_layers", "a cap for a kernel that asserts there is none", mla_verify(),
            [](MlaDecodeCall& c) { c.logit_cap = 30; });
  calls.unified("causal.is_set", "the causal flag was lost on the way", uneven_verify(),
                [](UnifiedCall& c) { c.causal = false; });
  calls.unified("window.is_the_layers", "a windowed layer without its window", windowed(),
                [](UnifiedCall& c) { c.window_size = {-1, -1}; });
  calls.unified("window.is_the_layers", "the window admits one key too many", windowed(),
                [](UnifiedCall& c) { c.window_size = {8, 0}; });
  calls.unified("window.is_the_layers", "the window is passed one key short, as SGLang does",
                windowed(), [](UnifiedCall& c) { c.window_size = {6, 0}; });
  calls.unified("sinks.are_the_layers", "the layer's sinks are not passed", with_sinks(),
                [](UnifiedCall& c) { c.sinks.reset(); });
  calls.unified("sinks.are_the_layers", "sinks of another rank's heads", with_sinks(),
                [](UnifiedCall& c) { c.sinks = contiguous(Dtype::bf16, {8}); });
  calls.unified("qq_bias.is_absent", "a bias over the new tokens", uneven_verify(),
                [](UnifiedCall& c) { c.qq_bias = contiguous(Dtype::f32, {3, 3}); });
}

void break_descales(BrokenCalls& calls) {
  calls.unified("descales.come_together", "k_descale without v_descale", fp8_cache(),
                [](UnifiedCall& c) { c.v_descale.reset(); });
  calls.mla("descales.come_together", "fp8 q without its scale", fp8_mla(),
            [](MlaDecodeCall& c) { c.q_scale.reset(); });
  calls.unified("descales.are_the_layers", "an fp8 cache without descales", fp8_cache(),
                [](UnifiedCall& c) {
                  c.k_descale.reset();
                  c.v_descale.reset();
                });
  calls.mla("descales.are_the_layers", "kv_scale is one value per head", fp8_mla(),
            [](MlaDecodeCall& c) { c.kv_scale = contiguous(Dtype::f32, {16}); });
}

/// A decode step over 4096 keys, in pages that keep the table short.
Problem long_decode() {
  Problem p = sample_problem(Mode::decode, {{4095, 1}});
  p.pool.page_size = 128;
  fit_pool(p);
  return p;
}

void break_launch(BrokenCalls& calls) {
  calls.unified("launch.splits_a_long_context", "one program walks 4096 keys", long_decode(),
                [](UnifiedCall& c) { c.launch->form = "2d", c.launch->kv_splits = 1; });
  Problem windowed = long_decode();
  windowed.model.window = 128;
  calls.unified("launch.reads_only_the_window", "a window of 128 in the split form over 4096 keys",
                windowed, [](UnifiedCall& c) { c.launch->form = "3d", c.launch->kv_splits = 64; });
  Problem page_48 = sample_problem(Mode::decode, {{600, 1}});
  page_48.pool.page_size = 48;
  fit_pool(page_48);
  calls.unified("launch.page_size_fits_the_split_tile", "the split form over pages of 48", page_48,
                [](UnifiedCall& c) { c.launch->form = "3d", c.launch->kv_splits = 8; });
  calls.unified("launch.shares_each_key_load", "every q head loads the keys for itself",
                long_decode(), [](UnifiedCall& c) { c.launch->queries_per_kv = 1; });
}

}  // namespace

void break_features(BrokenCalls& calls) {
  leave_out(calls);
  break_scalars(calls);
  break_descales(calls);
  break_launch(calls);
}

std::vector<BrokenCall> broken_gpu_calls() {
  BrokenCalls calls;
  break_shapes(calls);
  break_offsets_and_lengths(calls);
  break_addresses(calls);
  break_tensors(calls);
  break_features(calls);
  break_prefill(calls);
  break_memory(calls);
  break_paged(calls);
  break_legacy(calls);
  break_vllm(calls);
  break_work_lists(calls);
  return std::move(calls).take();
}

}  // namespace attest
