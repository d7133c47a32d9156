#include "contracts/rules/cpu_examples.hpp"
#include "contracts/signatures.hpp"
#include "contracts/signatures/sample_problems.hpp"

namespace attest {
namespace {

constexpr Severity wrong = Severity::wrong, fault = Severity::fault;
constexpr Severity slow = Severity::slow, policy = Severity::policy;

Problem verify() { return sample_problem(Mode::target_verify, {{6, 3}, {4, 2}}); }

Problem with_encoder(Problem p) {
  for (Request& r : p.requests) r.encoder_tokens = 2;
  fit_pool(p);
  return p;
}

Problem cross(Problem p) {
  p = with_encoder(p);
  p.model.cross_attention = true;
  return p;
}

/// A pool whose last slots lie past 2^31 elements.
Problem far_slots() {
  Problem p = verify();
  p.pool.page_size = 1;
  p.pool.num_pages = (std::int64_t{1} << 31) / 64 + 64;
  p.pool.placement = Placement::high;
  return p;
}

/// A windowed layer with a pool of its own, 16 slots of it listed.
Problem own_pool() {
  Problem p = sample_problem(Mode::target_verify, {{6, 2}});
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
  Lowered<ExtendCall> lowered = lower_extend(p, make_slot_map(p));
  auto& call = std::get<ExtendCall>(lowered);
  change(call);
  list.push_back({rule, severity, story, p, std::move(call)});
}

std::size_t cell(const ExtendCall& c, std::size_t request, std::int64_t column) {
  return static_cast<std::size_t>(c.req_pool_indices[request] * c.req_to_token.size(1) + column);
}

void add_shapes(std::vector<BrokenCpuCall>& list) {
  add(list, "tensor.sizes_are_sane", fault, "a pool of 2^41 slots", verify(),
      [](ExtendCall& c) { c.k_buffer.shape[0] = std::int64_t{1} << 41; });
  add(list, "batch.arrays_have_one_entry_per_request", fault, "one start for two requests",
      verify(), [](ExtendCall& c) { c.extend_start_loc = int_array(Dtype::int32, {0}); });
  add(list, "req_to_token.is_a_dense_matrix", wrong, "a table sliced out of a wider one", verify(),
      [](ExtendCall& c) { c.req_to_token.meta.strides[0] += 8; });
  add(list, "tensor.has_the_layers_shape", wrong, "an output one row short", verify(),
      [](ExtendCall& c) { c.o_extend.shape[0] -= 1; });
  add(list, "k_buffer.heads_divide_the_query_heads", wrong, "three kv heads for four query heads",
      verify(),
      [](ExtendCall& c) { c.k_buffer = contiguous(Dtype::bf16, {c.k_buffer.size(0), 3, 32}); });
}

void add_lengths(std::vector<BrokenCpuCall>& list) {
  add(list, "seq_lens.counts_committed_and_new_tokens", wrong,
      "verify passes the committed lengths as the totals", verify(),
      [](ExtendCall& c) { c.seq_lens.values = {6, 4}; });
  add(list, "seq_lens.counts_committed_and_new_tokens", wrong, "the drafts are counted twice",
      verify(), [](ExtendCall& c) { c.seq_lens.values = {12, 8}; });
  add(list, "seq_lens.leaves_the_committed_prefix", wrong, "the prefix is short by the drafts",
      verify(), [](ExtendCall& c) { c.seq_lens.values = {6, 4}; });
  add(list, "seq_lens.leaves_the_committed_prefix", fault, "fewer committed tokens than drafts",
      sample_problem(Mode::target_verify, {{1, 3}}),
      [](ExtendCall& c) { c.seq_lens.values = {1}; });
  add(list, "seq_lens.fits_the_table", fault, "a total past the columns of the table", verify(),
      [](ExtendCall& c) { c.seq_lens.values[0] = c.req_to_token.size(1) + 1; });
  add(list, "extend_seq_lens.counts_the_new_tokens", wrong,
      "the verify length is the mean of uneven ones",
      sample_problem(Mode::target_verify, {{6, 3}, {4, 1}}),
      [](ExtendCall& c) { c.extend_seq_lens.values = {2, 2}; });
  add(list, "extend_seq_lens.sums_to_the_rows_of_q", wrong, "one row is nobody's", verify(),
      [](ExtendCall& c) { c.extend_seq_lens.values[1] = 1; });
  add(list, "extend_start_loc.is_where_the_request_starts", wrong,
      "starts are spaced by the largest length",
      sample_problem(Mode::target_verify, {{6, 1}, {4, 3}}),
      [](ExtendCall& c) { c.extend_start_loc.values = {0, 3}; });
  add(list, "extend_start_loc.ranges_are_apart", fault, "two requests write the same rows",
      verify(), [](ExtendCall& c) { c.extend_start_loc.values = {0, 2}; });
  add(list, "extend_start_loc.ranges_are_apart", fault, "a request ends past q", verify(),
      [](ExtendCall& c) { c.extend_start_loc.values = {0, 4}; });
  add(list, "max_len_extend.is_the_longest_request", wrong, "the bound is one request too short",
      sample_problem(Mode::target_verify, {{6, 40}, {4, 2}}),
      [](ExtendCall& c) { c.max_len_extend = 2; });
  add(list, "max_len_extend.is_the_longest_request", wrong, "the bound is the server's draft count",
      verify(), [](ExtendCall& c) { c.max_len_extend = 4; });
}

void add_addresses(std::vector<BrokenCpuCall>& list) {
  add(list, "req_pool_indices.names_rows_of_the_table", fault, "a pool row past the table",
      verify(), [](ExtendCall& c) { c.req_pool_indices.values[1] = 99; });
  add(list, "req_to_token.names_slots_of_the_pool", fault, "a key in a slot the pool lacks",
      verify(), [](ExtendCall& c) { c.req_to_token.values[cell(c, 0, 2)] = 1 << 20; });
  add(list, "req_to_token.names_slots_of_the_pool", fault, "a key in front of the pool", verify(),
      [](ExtendCall& c) { c.req_to_token.values[cell(c, 0, 2)] = -7777; });
  add(list, "req_to_token.names_the_tokens_slots", wrong, "the requests read each other's rows",
      verify(),
      [](ExtendCall& c) { std::swap(c.req_pool_indices.values[0], c.req_pool_indices.values[1]); });
  add(list, "req_to_token.is_translated_to_the_layers_pool", policy,
      "a windowed layer reads through the full pool's table", own_pool(), [](ExtendCall& c) {
        for (std::int64_t j = 0; j < 8; ++j) c.req_to_token.values[cell(c, 0, j)] = 100 + j;
      });
  add(list, "req_to_token.names_the_encoders_slots", wrong,
      "the second request's encoder token in the first one's place", cross(verify()),
      [](ExtendCall& c) {
        c.req_to_token.values[cell(c, 0, 0)] = c.req_to_token.values[cell(c, 1, 0)];
      });
  add(list, "req_to_token.names_the_new_tokens_slots", policy,
      "the next step will look for a draft elsewhere", verify(),
      [](ExtendCall& c) { c.req_to_token.values[cell(c, 0, 7)] = 3; });
  add(list, "req_to_token.gives_new_tokens_their_own_slots", policy, "two drafts share a slot",
      verify(), [](ExtendCall& c) {
        c.req_to_token.values[cell(c, 0, 7)] = c.req_to_token.values[cell(c, 0, 6)];
      });
  add(list, "req_to_token.dtype_holds_the_element_offsets", wrong,
      "int32 slots past 2^31 elements of the pool", far_slots(), [](ExtendCall& c) {
        c.req_to_token.meta.dtype = c.extend_seq_lens.meta.dtype = Dtype::int32;
        c.extend_start_loc.meta.dtype = Dtype::int32;
      });
}

void add_scalars(std::vector<BrokenCpuCall>& list) {
  add(list, "sm_scale.is_the_layers_scale", wrong,
      "1/sqrt(head size) for a layer that scales by 1/8", verify(),
      [](ExtendCall& c) { c.sm_scale = 0.17677669529663687; });
  add(list, "logit_cap.is_the_layers_cap", wrong, "the layer's cap is lost",
      with(verify(), [](Problem& p) { p.model.softcap = 1; }),
      [](ExtendCall& c) { c.logit_cap = 0; });
  add(list, "logit_cap.reaches_the_scores", policy, "a capped layer on a kernel that ignores caps",
      with(verify(), [](Problem& p) { p.model.softcap = 1; }), [](ExtendCall&) {});
  add(list, "sliding_window_size.is_the_layers_window", wrong,
      "the layer's distance instead of its key count",
      with(verify(), [](Problem& p) { p.model.window = 4; }),
      [](ExtendCall& c) { c.sliding_window_size = 3; });
  add(list, "sliding_window_size.is_the_layers_window", policy,
      "a window lost that is wider than the context",
      with(verify(), [](Problem& p) { p.model.window = 64; }),
      [](ExtendCall& c) { c.sliding_window_size = 0; });
}

void add_features(std::vector<BrokenCpuCall>& list) {
  add(list, "sinks.has_one_logit_per_query_head", wrong, "the layer's sinks are lost",
      with(verify(), [](Problem& p) { p.model.sinks = true; }),
      [](ExtendCall& c) { c.sinks.reset(); });
  add(list, "is_cross_attn.is_the_layers_kind", wrong, "an encoder layer run as a causal one",
      cross(verify()), [](ExtendCall& c) {
        c.is_cross_attn = false;
        c.k_extend = contiguous(Dtype::bf16, {5, 2, 32});
        c.v_extend = c.k_extend;
      });
  add(list, "encoder_lens.counts_the_encoder_tokens", wrong, "the encoder offset is lost",
      with_encoder(verify()), [](ExtendCall& c) { c.encoder_lens.reset(); });
  add(list, "key.comes_with_its_value", fault, "new keys without their values", verify(),
      [](ExtendCall& c) { c.v_extend.reset(); });
}

void add_dtypes_and_layout(std::vector<BrokenCpuCall>& list) {
  add(list, "seq_lens.is_int64", fault, "int32 lengths", verify(),
      [](ExtendCall& c) { c.seq_lens.meta.dtype = Dtype::int32; });
  add(list, "req_to_token.is_int32_or_int64", fault, "a table of bytes", verify(),
      [](ExtendCall& c) { c.req_to_token.meta.dtype = Dtype::uint8; });
  add(list, "extend_seq_lens.has_the_tables_dtype", fault, "int64 lengths beside an int32 table",
      verify(), [](ExtendCall& c) { c.extend_seq_lens.meta.dtype = Dtype::int64; });
  add(list, "k_buffer.has_qs_dtype", fault, "a half-precision pool under bfloat16 queries",
      verify(), [](ExtendCall& c) { c.k_buffer.dtype = Dtype::f16; });
  add(list, "output.is_contiguous", fault, "an output with the heads outside", verify(),
      [](ExtendCall& c) { c.o_extend.strides = {32, 160, 1}; });
  add(list, "tensor.has_a_dense_last_dim", fault, "queries with every other element", verify(),
      [](ExtendCall& c) { c.q_extend.strides = {256, 64, 2}; });
  add(list, "k_buffer.heads_are_not_expanded", slow, "one kv head expanded to all query heads",
      with(verify(), [](Problem& p) { p.model.num_kv_heads = 1; }), [](ExtendCall& c) {
        for (TensorMeta* t : {&c.k_buffer, &c.v_buffer, &*c.k_extend, &*c.v_extend}) {
          t->shape[1] = 4;
          t->strides[1] = 0;
        }
      });
  add(list, "offset.fits_int32", fault, "a table of 8192 rows of 524288 tokens, known by its hash",
      verify(), [](ExtendCall& c) {
        c.req_to_token.meta = contiguous(Dtype::int32, {8192, 524288});
        c.req_to_token.values.clear();
        c.req_to_token.recorded = false;
      });
}

}  // namespace

std::vector<BrokenCpuCall> broken_extend_calls() {
  std::vector<BrokenCpuCall> list;
  add_shapes(list);
  add_lengths(list);
  add_addresses(list);
  add_scalars(list);
  add_features(list);
  add_dtypes_and_layout(list);
  return list;
}

}  // namespace attest
