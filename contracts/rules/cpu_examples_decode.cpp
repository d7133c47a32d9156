#include "contracts/rules/cpu_examples.hpp"
#include "contracts/signatures.hpp"
#include "contracts/signatures/sample_problems.hpp"

namespace attest {
namespace {

constexpr Severity wrong = Severity::wrong, fault = Severity::fault;
constexpr Severity slow = Severity::slow, policy = Severity::policy;

Problem step() { return sample_problem(Mode::decode, {{6, 1}, {4, 1}}); }

/// Two branches of one request at the third draft step.
Problem drafts() {
  Problem p = sample_problem(Mode::draft_decode, {{7, 1}, {7, 1}});
  p.topk = 2;
  p.draft_step = 2;
  for (Request& r : p.requests) {
    r.shared_prefix = 5;
    r.shared_sequence = 1;
  }
  p.pool.page_size = 1;
  fit_pool(p);
  return p;
}

Problem padded() {
  Problem p = step();
  p.requests[1].live = false;
  fit_pool(p);
  return p;
}

Problem latent() { return sample_mla_problem(Mode::decode, {{6, 1}}); }

/// A latent pool whose last slots lie past 2^31 elements.
Problem far_latent() {
  Problem p = latent();
  p.pool.page_size = 1;
  p.pool.num_pages = (std::int64_t{1} << 31) / 576 + 64;
  p.pool.placement = Placement::high;
  return p;
}

Problem with_encoder(Problem p) {
  for (Request& r : p.requests) r.encoder_tokens = 2;
  fit_pool(p);
  return p;
}

Problem cross() {
  Problem p = with_encoder(step());
  p.model.cross_attention = true;
  return p;
}

/// A windowed layer with a pool of its own, 16 slots of it listed.
Problem own_pool() {
  Problem p = sample_problem(Mode::decode, {{7, 1}});
  p.model.window = 4;
  p.pool.page_size = 1;
  p.pool.num_pages = 16;
  p.pool.slots = {{{-1, 2}, {3, 6}}};
  return p;
}

Problem with(Problem p, void (*change)(Problem&)) {
  change(p);
  return p;
}

template <class Change>
void add(std::vector<BrokenCpuCall>& list, std::string_view rule, Severity severity,
         std::string_view story, const Problem& p, Change change) {
  Lowered<DecodeCall> lowered = lower_decode(p, make_slot_map(p));
  auto& call = std::get<DecodeCall>(lowered);
  change(call);
  list.push_back({rule, severity, story, p, std::move(call)});
}

std::size_t cell(const DecodeCall& c, std::size_t request, std::int64_t column) {
  return static_cast<std::size_t>(c.req_pool_indices[request] * c.req_to_token.size(1) + column);
}

void add_lengths(std::vector<BrokenCpuCall>& list) {
  add(list, "batch.arrays_have_one_entry_per_request", fault,
      "draft decode with the batch's lengths, not the branches'", drafts(),
      [](DecodeCall& c) { c.seq_lens = int_array(Dtype::int64, {5}); });
  add(list, "seq_lens.counts_committed_and_new_tokens", wrong,
      "a draft step with the lengths from before drafting", drafts(),
      [](DecodeCall& c) { c.seq_lens.values = {5, 5}; });
  add(list, "seq_lens.is_at_least_one", fault, "a row without a key",
      sample_problem(Mode::decode, {{0, 1}}), [](DecodeCall& c) { c.seq_lens.values = {0}; });
  add(list, "seq_lens.is_at_least_one", policy, "a padded row of no keys", padded(),
      [](DecodeCall& c) { c.seq_lens.values[1] = 0; });
  add(list, "seq_lens.fits_the_table", fault, "encoder and text together leave the row",
      with_encoder(step()),
      [](DecodeCall& c) { c.seq_lens.values[0] = c.req_to_token.size(1) - 1; });
}

void add_stores(std::vector<BrokenCpuCall>& list) {
  add(list, "loc.names_a_slot_of_the_pool", fault, "the new key is stored past the pool", step(),
      [](DecodeCall& c) { c.loc.values[0] = 1 << 20; });
  add(list, "loc.is_the_new_tokens_slot", wrong, "the new key is stored one slot further on",
      step(), [](DecodeCall& c) { c.loc.values[0] += 1; });
  add(list, "loc.is_distinct", wrong, "two branches store into one slot", drafts(),
      [](DecodeCall& c) { c.loc.values[1] = c.loc.values[0]; });
  add(list, "loc.leaves_live_keys_alone", wrong, "a padded row stores over a committed key",
      padded(), [](DecodeCall& c) { c.loc.values[1] = c.req_to_token.values[cell(c, 0, 2)]; });
  add(list, "loc.is_the_last_visible_cell", wrong, "the row's last cell is a stale slot", step(),
      [](DecodeCall& c) { c.req_to_token.values[cell(c, 0, 6)] = 0; });
}

void add_addresses(std::vector<BrokenCpuCall>& list) {
  add(list, "req_pool_indices.names_rows_of_the_table", fault, "a pool row in front of the table",
      step(), [](DecodeCall& c) { c.req_pool_indices.values[0] = -1; });
  add(list, "req_to_token.names_slots_of_the_pool", fault, "the undefined tail of a row is read",
      drafts(), [](DecodeCall& c) { c.req_to_token.values[cell(c, 1, 6)] = -7777; });
  add(list, "req_to_token.names_the_tokens_slots", wrong, "a branch reads its sibling's drafts",
      drafts(), [](DecodeCall& c) {
        c.req_to_token.values[cell(c, 1, 5)] = c.req_to_token.values[cell(c, 0, 5)];
      });
  add(list, "req_to_token.is_a_dense_matrix", wrong, "a table sliced out of a wider one", step(),
      [](DecodeCall& c) { c.req_to_token.meta.strides[0] += 8; });
  add(list, "req_to_token.is_translated_to_the_layers_pool", policy,
      "a windowed layer reads through the full pool's table", own_pool(), [](DecodeCall& c) {
        for (std::int64_t j = 0; j < 8; ++j) c.req_to_token.values[cell(c, 0, j)] = 100 + j;
      });
  add(list, "req_to_token.names_the_encoders_slots", wrong,
      "the second request's encoder token in the first one's place", cross(), [](DecodeCall& c) {
        c.req_to_token.values[cell(c, 0, 0)] = c.req_to_token.values[cell(c, 1, 0)];
      });
  add(list, "req_to_token.dtype_holds_the_element_offsets", wrong,
      "int32 slots past 2^31 elements of the latent pool", far_latent(),
      [](DecodeCall& c) { c.req_to_token.meta.dtype = Dtype::int32; });
}

void add_dtypes(std::vector<BrokenCpuCall>& list) {
  add(list, "seq_lens.is_int64", fault, "int32 slots of the new tokens", step(),
      [](DecodeCall& c) { c.loc.meta.dtype = Dtype::int32; });
  add(list, "req_to_token.is_int32_or_int64", fault, "a table of bytes", step(),
      [](DecodeCall& c) { c.req_to_token.meta.dtype = Dtype::uint8; });
  add(list, "k_buffer.has_qs_dtype", fault, "new keys in half precision", step(),
      [](DecodeCall& c) { c.key->dtype = Dtype::f16; });
}

void add_layout(std::vector<BrokenCpuCall>& list) {
  add(list, "tensor.sizes_are_sane", fault, "a pool of 2^41 slots", step(),
      [](DecodeCall& c) { c.k_buffer.shape[0] = std::int64_t{1} << 41; });
  add(list, "tensor.has_a_dense_last_dim", fault, "queries with every other element", step(),
      [](DecodeCall& c) { c.query.strides = {256, 64, 2}; });
  add(list, "tensor.has_the_layers_shape", wrong, "an output one row short", step(),
      [](DecodeCall& c) { c.output.shape[0] -= 1; });
  add(list, "k_buffer.heads_divide_the_query_heads", wrong, "query heads split unevenly", step(),
      [](DecodeCall& c) { c.query.shape[1] = 3; });
  add(list, "attn_logits.fits_the_batch", fault, "no room for the log-sum-exp", step(),
      [](DecodeCall& c) { c.attn_logits = contiguous(Dtype::f32, {2, 4, 8, 32}); });
  add(list, "output.is_contiguous", wrong, "an output with the heads outside", step(),
      [](DecodeCall& c) { c.output.strides = {32, 64, 1}; });
  add(list, "k_buffer.heads_are_not_expanded", slow, "one kv head expanded to all query heads",
      with(step(), [](Problem& p) { p.model.num_kv_heads = 1; }), [](DecodeCall& c) {
        for (TensorMeta* t : {&c.k_buffer, &c.v_buffer, &*c.key, &*c.value}) {
          t->shape[1] = 4;
          t->strides[1] = 0;
        }
      });
  add(list, "v_buffer.shares_ks_storage", slow, "the latent values copied out of the pool",
      latent(), [](DecodeCall& c) { c.v_buffer.storage = "v_pool"; });
  add(list, "key.comes_with_its_value", fault, "a new key without its value", step(),
      [](DecodeCall& c) { c.value.reset(); });
}

void add_scalars(std::vector<BrokenCpuCall>& list) {
  add(list, "sm_scale.is_the_layers_scale", wrong,
      "1/sqrt(head size) for a layer that scales by 1/8", step(),
      [](DecodeCall& c) { c.sm_scale = 0.17677669529663687; });
  add(list, "logit_cap.is_the_layers_cap", wrong, "the layer's cap is lost",
      with(step(), [](Problem& p) { p.model.softcap = 1; }),
      [](DecodeCall& c) { c.logit_cap = 0; });
  add(list, "sliding_window_size.is_the_layers_window", wrong, "the window is one key too wide",
      with(step(), [](Problem& p) { p.model.window = 4; }),
      [](DecodeCall& c) { c.sliding_window_size = 5; });
  add(list, "is_cross_attn.is_the_layers_kind", wrong, "an encoder layer run as a causal one",
      cross(), [](DecodeCall& c) { c.is_cross_attn = false; });
  add(list, "encoder_lens.counts_the_encoder_tokens", wrong,
      "cross attention without the encoder's length", cross(),
      [](DecodeCall& c) { c.encoder_lens.reset(); });
  add(list, "logit_cap.is_off_on_the_mla_path", fault, "a cap on the MLA path", latent(),
      [](DecodeCall& c) { c.logit_cap = 30; });
  add(list, "sliding_window_size.stands_alone", wrong, "a window beside an encoder",
      with_encoder(step()), [](DecodeCall& c) { c.sliding_window_size = 3; });
  add(list, "sliding_window_size.stands_alone", wrong, "a window on the MLA path", latent(),
      [](DecodeCall& c) { c.sliding_window_size = 3; });
  add(list, "sinks.has_one_logit_per_query_head", fault, "sinks of another layer's head count",
      step(), [](DecodeCall& c) { c.sinks = contiguous(Dtype::bf16, {8}); });
}

}  // namespace

std::vector<BrokenCpuCall> broken_decode_calls() {
  std::vector<BrokenCpuCall> list;
  add_lengths(list);
  add_stores(list);
  add_addresses(list);
  add_dtypes(list);
  add_layout(list);
  add_scalars(list);
  return list;
}

}  // namespace attest
