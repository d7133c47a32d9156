#include <algorithm>
#include <array>
#include <cmath>

#include "contracts/rules.hpp"
#include "property_tests/generators.hpp"
#include "property_tests/smaller_parts.hpp"

namespace attest {
namespace {

/// The case lowers, its fault still applies, and (without the fault) no rule rejects it.
bool is_legal(const Case& c, bool rules_too) {
  if (problem_error(c.problem)) return false;
  const SlotMap slots = make_slot_map(c.problem);
  const auto call = call_of(c, slots);
  if (std::holds_alternative<Unsupported>(call)) return false;
  if (!rules_too) return true;
  const Lowered<Call> right = lower(c.signature, c.problem, slots);
  if (std::holds_alternative<Unsupported>(right)) return false;
  return !check(std::get<Call>(right), Truth{c.problem, slots, {}}).rejects();
}

std::int64_t size_of_requests(const Problem& problem) {
  std::int64_t size = 0;
  for (const Request& r : problem.requests) {
    size += 50 + r.committed + 4 * r.new_tokens + r.encoder_tokens;
    size += r.tree_parent.empty() ? 0 : 10;
    size += r.shared_prefix > 0 ? 10 : 0;
    size += r.live ? 0 : 10;
  }
  return size;
}

std::int64_t size_of_features(const Case& c) {
  const Problem& problem = c.problem;
  const Model& m = problem.model;
  const std::array present = {
      m.window.has_value(),
      m.softcap > 0,
      m.sinks,
      m.cross_attention,
      m.q_descale.has_value(),
      m.k_descale.has_value(),
      m.v_descale.has_value(),
      is_fp8(m.kv_dtype),
      is_fp8(m.q_dtype),
      problem.pool.k != KvStrides{},
      problem.pool.v != KvStrides{},
      !problem.pool.slots.empty(),
      problem.pool.placement == Placement::high,
      problem.context_len != 0,
      problem.num_draft_tokens.has_value(),
      problem.topk > 1,
      problem.draft_step > 0,
      problem.path != Path::eager,
      std::abs(m.softmax_scale * std::sqrt(static_cast<double>(m.head_dim)) - 1) > 1e-6,
      c.recipe != Recipe::normal,
      c.poison != PoisonPlan{},
  };
  return 20 * std::count(present.begin(), present.end(), true);
}

}  // namespace

CaseSize size_of(const Case& c) {
  const Model& m = c.problem.model;
  const std::int64_t model = 3 * (m.num_q_heads + m.num_kv_heads) + m.head_dim + m.v_head_dim;
  return {size_of_requests(c.problem) + model + c.problem.pool.page_size + size_of_features(c),
          c.problem.pool.num_pages};
}

Proposals::Proposals(const Case& from) : from_(from), size_(size_of(from)) {
  legal_ = is_legal(from, true);
}

void Proposals::keep(Case candidate) {
  if (problem_error(candidate.problem)) return;
  if (size_of(candidate) < size_ && is_legal(candidate, legal_))
    kept_.push_back(std::move(candidate));
}

std::vector<Case> smaller(const Case& c) {
  // Explicit arguments describe one Problem; there is no lowering to follow a change of it.
  if (c.call || problem_error(c.problem)) return {};
  Proposals proposals(c);
  propose_fewer_requests(proposals);
  propose_shorter_lengths(proposals);
  propose_fewer_features(proposals);
  propose_shorter_windows(proposals);
  propose_fewer_new_tokens(proposals);
  propose_fewer_heads(proposals);
  propose_smaller_pool(proposals);
  return proposals.take();
}

}  // namespace attest
