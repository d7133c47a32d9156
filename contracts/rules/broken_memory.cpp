#include "contracts/rules/broken_parts.hpp"

namespace attest {
namespace {

Problem with_sinks() {
  Problem p = uneven_verify();
  p.model.sinks = true;
  return p;
}

/// Two requests whose new tokens got one slot.
Problem given_twice(Problem p) {
  p.pool.page_size = 1;
  p.pool.num_pages = 128;
  p.pool.slots.clear();
  for (std::size_t i = 0; i < p.requests.size(); ++i) {
    const Request& r = p.requests[i];
    p.pool.slots.push_back(
        {{1 + 40 * static_cast<std::int64_t>(i), r.committed}, {100, r.new_tokens}});
  }
  return p;
}

void break_storage(BrokenCalls& calls) {
  calls.unified("tensor.lies_inside_its_storage", "k begins past its storage", uneven_verify(),
                [](UnifiedCall& c) { c.k.storage_offset = std::int64_t{1} << 31; });
  calls.unified("tensor.lies_inside_its_storage", "q lies in a storage of one element",
                uneven_verify(), [](UnifiedCall& c) { c.q.storage_bytes = 2; });
  calls.mla("tensor.lies_inside_its_storage", "kv_indptr lies in a storage of one entry",
            mla_verify(), [](MlaDecodeCall& c) { c.kv_indptr.meta.storage_bytes = 4; });
  calls.prefill("tensor.lies_inside_its_storage", "v lies in the storage of one token",
                uneven_verify(), [](BatchPrefillCall& c) { c.v.storage_bytes = 128; });
}

void break_rows(BrokenCalls& calls) {
  calls.unified("tensor.rows_do_not_overlap", "one query row is expanded to all", uneven_verify(),
                [](UnifiedCall& c) { c.q.strides[0] = 0; });
  calls.unified("tensor.rows_do_not_overlap", "one query head is expanded to all", uneven_verify(),
                [](UnifiedCall& c) { c.q.strides[1] = 0; });
  calls.mla("tensor.rows_do_not_overlap", "query heads half a head apart", mla_verify(),
            [](MlaDecodeCall& c) { c.q.strides[1] = 288; });
  calls.prefill("tensor.rows_do_not_overlap", "one query row is expanded to all", uneven_verify(),
                [](BatchPrefillCall& c) { c.q.strides[0] = 0; });
}

void break_sharing(BrokenCalls& calls) {
  calls.unified("tensor.has_memory_of_its_own", "the K pool is passed as V", uneven_verify(),
                [](UnifiedCall& c) { c.k.storage = c.v.storage = "k_pool"; });
  calls.mla("tensor.has_memory_of_its_own", "q lies in the pool", mla_verify(),
            [](MlaDecodeCall& c) { c.q.storage = c.kv_buffer.storage = "pool"; });
  calls.prefill("tensor.has_memory_of_its_own", "the K pool is passed as V", uneven_verify(),
                [](BatchPrefillCall& c) { c.k.storage = c.v.storage = "k_pool"; });
  calls.unified("out.overlaps_no_input", "out lies over the K pool", uneven_verify(),
                [](UnifiedCall& c) { c.k.storage = c.out.storage = "k_pool"; });
  calls.mla("out.overlaps_no_input", "o is the beginning of q", mla_verify(),
            [](MlaDecodeCall& c) { c.q.storage = c.o.storage = "rows"; });
  calls.unified("sinks.are_dense", "every other sink", with_sinks(),
                [](UnifiedCall& c) { c.sinks->strides = {2}; });
  calls.prefill("sinks.are_dense", "one sink is expanded to all heads", with_sinks(),
                [](BatchPrefillCall& c) { c.sink_ptr->strides = {0}; });
  calls.unified("block_table.rows_do_not_overlap",
                "rows begin two pages apart, requests have three", uneven_verify(),
                [](UnifiedCall& c) { c.block_table.meta.strides[0] = 2; });
}

void break_schedule(BrokenCalls& calls) {
  calls.mla("num_kv_splits.is_positive", "no split at all", mla_verify(),
            [](MlaDecodeCall& c) { c.num_kv_splits = 0; });
  calls.mla("persistent.is_off", "the work lists of a persistent kernel", mla_verify(),
            [](MlaDecodeCall& c) { c.persistent = true; });
  for (const Signature signature :
       {Signature::unified, Signature::batch_prefill, Signature::legacy_extend}) {
    const Problem p = given_twice(uneven_verify());
    calls.unsaid("new_tokens.have_slots_of_their_own", "two requests' drafts get the same slots", p,
                 p, nullptr, signature);
  }
  Problem step = sample_problem(Mode::decode, {{35, 1}, {9, 1}});
  step.model.head_dim = step.model.v_head_dim = 64;
  const Problem shared = given_twice(step);
  calls.unsaid("new_tokens.have_slots_of_their_own", "two requests' tokens get the same slot",
               shared, shared, nullptr, Signature::paged_ragged);
  const Problem p = given_twice(mla_verify());
  calls.unsaid("new_tokens.have_slots_of_their_own", "two requests' drafts get the same slots", p,
               p);
}

void break_requests(BrokenCalls& calls) {
  const auto emptied = [](Problem p) {
    p.requests.back().committed = p.requests.back().new_tokens = 0;
    return p;
  };
  constexpr std::string_view rule = "live_requests.have_keys";
  constexpr std::string_view story = "a live request without a key, where another was";
  for (const Signature signature : {Signature::unified, Signature::batch_prefill,
                                    Signature::legacy_extend, Signature::vllm_cpu}) {
    calls.unsaid(rule, story, emptied(uneven_verify()), uneven_verify(), nullptr, signature);
  }
  calls.unsaid(rule, story, emptied(mla_verify()), mla_verify());
  Problem step = sample_problem(Mode::decode, {{35, 1}, {9, 1}});
  step.model.head_dim = step.model.v_head_dim = 64;
  calls.unsaid(rule, story, emptied(step), step, nullptr, Signature::paged_ragged);
}

}  // namespace

void break_memory(BrokenCalls& calls) {
  break_storage(calls);
  break_rows(calls);
  break_sharing(calls);
  break_schedule(calls);
  break_requests(calls);
}

}  // namespace attest
