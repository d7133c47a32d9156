#include <stdexcept>

#include "contracts/rules/cpu_examples.hpp"
#include "contracts/signatures.hpp"
#include "contracts/signatures/sample_problems.hpp"

namespace attest {
namespace {

constexpr Severity wrong = Severity::wrong, fault = Severity::fault, policy = Severity::policy;

/// Two requests, each a root with two drafts after it; the second has no prefix.
Problem trees() {
  Problem p = sample_problem(Mode::target_verify, {{3, 3}, {0, 3}});
  p.topk = 2;
  for (Request& r : p.requests) r.tree_parent = {-1, 0, 0};
  return p;
}

Problem chains(std::int64_t topk) {
  Problem p = sample_problem(Mode::target_verify, {{3, 2}, {2, 2}});
  p.topk = topk;
  return p;
}

/// 33 drafts of one request: one more than the kernel's block of rows.
Problem long_chain() {
  Problem p = sample_problem(Mode::target_verify, {{3, 33}});
  p.topk = 2;
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

std::int64_t& entry_of(ExtendCall& c, std::int64_t request, std::int64_t t, std::int64_t u) {
  if (!c.tree_mask) throw std::logic_error("this example has no tree_mask to change");
  const std::int64_t q = c.max_len_extend;
  return c.tree_mask->values[static_cast<std::size_t>((request * q + t) * q + u)];
}

}  // namespace

std::vector<BrokenCpuCall> broken_tree_calls() {
  std::vector<BrokenCpuCall> list;
  add(list, "tree_mask.holds_one_square_per_request", fault, "a mask over the whole key range",
      trees(), [](ExtendCall& c) {
        c.tree_mask = int_array(Dtype::boolean, std::vector<std::int64_t>(3 * 6 + 3 * 3, 1));
      });
  add(list, "tree_mask.is_given_for_trees", wrong, "a draft tree verified as a chain", trees(),
      [](ExtendCall& c) { c.tree_mask.reset(); });
  add(list, "tree_mask.is_given_for_trees", policy, "a mask although the server drafts chains",
      chains(1),
      [](ExtendCall& c) { c.tree_mask = int_array(Dtype::boolean, {1, 0, 1, 1, 1, 0, 1, 1}); });
  add(list, "tree_mask.is_given_for_trees", policy, "no mask for a chain of a server with trees",
      chains(2), [](ExtendCall& c) { c.tree_mask.reset(); });
  add(list, "tree_mask.verifies_one_length", fault, "one request verifies fewer drafts", trees(),
      [](ExtendCall& c) { c.extend_seq_lens.values[1] = 2; });
  add(list, "max_len_extend.is_the_longest_request", fault,
      "the mask and the bound are the server's draft count", chains(2), [](ExtendCall& c) {
        c.max_len_extend = 3;
        c.tree_mask =
            int_array(Dtype::boolean, {1, 0, 0, 1, 1, 0, 1, 1, 1, 1, 0, 0, 1, 1, 0, 1, 1, 1});
      });
  add(list, "tree_mask.is_the_draft_tree", wrong, "a draft sees its sibling", trees(),
      [](ExtendCall& c) { entry_of(c, 0, 2, 1) = 1; });
  add(list, "tree_mask.shows_every_token_itself", wrong, "a draft does not see itself", trees(),
      [](ExtendCall& c) { entry_of(c, 0, 1, 1) = 0; });
  add(list, "tree_mask.shows_every_token_itself", fault, "a row without any key", trees(),
      [](ExtendCall& c) { entry_of(c, 1, 0, 0) = 0; });
  add(list, "tree_mask.looks_only_back", wrong, "a block of 33 drafts that all see each other",
      long_chain(),
      [](ExtendCall& c) { c.tree_mask->values.assign(c.tree_mask->values.size(), 1); });
  add(list, "tree_mask.looks_only_back", policy, "a draft sees one that comes after it", trees(),
      [](ExtendCall& c) { entry_of(c, 0, 0, 1) = 1; });
  add(list, "tree_mask.is_a_contiguous_bool", fault, "a mask of bytes", trees(),
      [](ExtendCall& c) { c.tree_mask->meta.dtype = Dtype::uint8; });
  add(list, "sliding_window_size.stands_alone", fault, "a window beside a draft tree", trees(),
      [](ExtendCall& c) { c.sliding_window_size = 64; });
  return list;
}

}  // namespace attest
