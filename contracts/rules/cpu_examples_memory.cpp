#include "contracts/rules/cpu_examples.hpp"
#include "contracts/signatures.hpp"
#include "contracts/signatures/sample_problems.hpp"

namespace attest {
namespace {

constexpr Severity wrong = Severity::wrong, fault = Severity::fault;

using List = std::vector<BrokenCpuCall>;

template <class CallType, class Change>
void add(List& list, std::string_view rule, Severity severity, std::string_view story,
         const Problem& p, Lowered<CallType> lowered, Change change) {
  auto& call = std::get<CallType>(lowered);
  change(call);
  list.push_back({rule, severity, story, p, std::move(call)});
}

template <class Change>
void extend(List& list, std::string_view rule, Severity severity, std::string_view story,
            const Problem& p, Change change) {
  add(list, rule, severity, story, p, lower_extend(p, make_slot_map(p)), change);
}

template <class Change>
void decode(List& list, std::string_view rule, Severity severity, std::string_view story,
            const Problem& p, Change change) {
  add(list, rule, severity, story, p, lower_decode(p, make_slot_map(p)), change);
}

Problem verify() { return sample_problem(Mode::target_verify, {{6, 3}, {4, 2}}); }
Problem step() { return sample_problem(Mode::decode, {{6, 1}, {4, 1}}); }
Problem latent() { return sample_mla_problem(Mode::decode, {{6, 1}}); }
Problem latent_prompt() { return sample_mla_problem(Mode::extend, {{6, 3}}); }

Problem with_sinks(Problem p) {
  p.model.sinks = true;
  return p;
}

/// The second request's new token is put where the first one has a committed key.
Problem given_twice(Problem p) {
  p.pool.page_size = 1;
  p.pool.num_pages = 32;
  const std::int64_t fresh = p.requests[1].new_tokens;
  p.pool.slots = {{{1, p.requests[0].kv_len()}}, {{16, p.requests[1].committed}, {2, fresh}}};
  return p;
}

void break_storage(List& list) {
  extend(list, "tensor.lies_inside_its_storage", fault, "k_buffer begins past its storage",
         verify(), [](ExtendCall& c) { c.k_buffer.storage_offset = std::int64_t{1} << 31; });
  decode(list, "tensor.lies_inside_its_storage", fault, "queries of a storage of one element",
         step(), [](DecodeCall& c) { c.query.storage_bytes = 2; });
}

void break_rows(List& list) {
  extend(list, "tensor.rows_do_not_overlap", wrong, "one query row is expanded to all", verify(),
         [](ExtendCall& c) { c.q_extend.strides[0] = 0; });
  extend(list, "tensor.rows_do_not_overlap", wrong, "new keys whose heads are half apart", verify(),
         [](ExtendCall& c) { c.k_extend->strides[1] = 16; });
  extend(list, "tensor.rows_do_not_overlap", wrong, "the first of two kv heads is expanded",
         verify(), [](ExtendCall& c) { c.k_buffer.strides[1] = 0; });
  extend(list, "tensor.rows_do_not_overlap", wrong, "rows and heads of the new values swapped",
         verify(), [](ExtendCall& c) { c.v_extend->strides = {32, 64, 1}; });
  decode(list, "tensor.rows_do_not_overlap", wrong, "one query head is expanded to all", step(),
         [](DecodeCall& c) { c.query.strides[1] = 0; });
  decode(list, "tensor.rows_do_not_overlap", wrong, "kv heads one element apart", step(),
         [](DecodeCall& c) { c.v_buffer.strides[1] = 1; });
  decode(list, "v_buffer.begins_ks_rows", wrong, "K's rows are one element wider than V's",
         latent(), [](DecodeCall& c) { c.k_buffer.strides[0] = 577; });
  extend(list, "v_buffer.begins_ks_rows", wrong, "V is the end of K's rows", latent_prompt(),
         [](ExtendCall& c) { c.v_buffer.storage_offset = 64; });
}

void break_sharing(List& list) {
  extend(list, "tensor.has_memory_of_its_own", wrong, "the new keys are passed as values", verify(),
         [](ExtendCall& c) { c.k_extend->storage = c.v_extend->storage = "new"; });
  decode(list, "tensor.has_memory_of_its_own", wrong, "the K pool is passed as V", step(),
         [](DecodeCall& c) { c.v_buffer.storage = c.k_buffer.storage; });
  decode(list, "tensor.has_memory_of_its_own", wrong, "the new key is passed as its value", step(),
         [](DecodeCall& c) { c.key->storage = c.value->storage = "new"; });
  extend(list, "out.overlaps_no_input", wrong, "the output lies over the K pool", verify(),
         [](ExtendCall& c) { c.o_extend.storage = c.k_buffer.storage; });
  decode(list, "out.overlaps_no_input", wrong, "the output lies over the queries", step(),
         [](DecodeCall& c) { c.output.storage = c.query.storage = "rows"; });
}

void break_arrays(List& list) {
  extend(list, "seq_lens.is_dense", wrong, "starts are a column of a matrix", verify(),
         [](ExtendCall& c) { c.extend_start_loc.meta.strides = {2}; });
  decode(list, "seq_lens.is_dense", wrong, "one slot is expanded to the batch", step(),
         [](DecodeCall& c) { c.loc.meta.strides = {0}; });
  extend(list, "sinks.are_dense", wrong, "every other sink", with_sinks(verify()),
         [](ExtendCall& c) { c.sinks->strides = {2}; });
  decode(list, "sinks.are_dense", wrong, "one sink is expanded to all heads", with_sinks(step()),
         [](DecodeCall& c) { c.sinks->strides = {0}; });
}

void break_steps(List& list) {
  extend(list, "new_tokens.have_slots_of_their_own", wrong,
         "drafts are given slots of another request's prefix", given_twice(verify()),
         [](ExtendCall&) {});
  decode(list, "new_tokens.have_slots_of_their_own", wrong,
         "a new token is given a slot of another request's prefix", given_twice(step()),
         [](DecodeCall&) {});
}

/// The second request has neither a committed nor a new token.
Problem emptied(Problem p) {
  p.requests[1].committed = p.requests[1].new_tokens = 0;
  return p;
}

void break_requests(List& list) {
  extend(list, "live_requests.have_keys", fault, "a live request without a key", emptied(verify()),
         [](ExtendCall&) {});
  add(list, "live_requests.have_keys", fault, "a live request without a key", emptied(step()),
      lower_decode(step(), make_slot_map(step())), [](DecodeCall&) {});
}

}  // namespace

std::vector<BrokenCpuCall> broken_memory_calls() {
  List list;
  break_storage(list);
  break_rows(list);
  break_sharing(list);
  break_arrays(list);
  break_steps(list);
  break_requests(list);
  return list;
}

}  // namespace attest
