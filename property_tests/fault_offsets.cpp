#include <algorithm>

#include "property_tests/fault_edits.hpp"

namespace attest {
namespace {

bool all_have_length(const Problem& problem, std::int64_t length) {
  return std::all_of(problem.requests.begin(), problem.requests.end(),
                     [length](const Request& r) { return r.new_tokens == length; });
}

/// cu_seqlens_q = 0, length, 2 length, ...
void set_equal_offsets(UnifiedCall& call, std::int64_t length) {
  for (std::size_t i = 0; i < call.cu_seqlens_q.values.size(); ++i) {
    call.cu_seqlens_q.values[i] = static_cast<std::int64_t>(i) * length;
  }
}

/// The whole metadata of a verify step whose width is one number for the batch.
bool verify_with_one_length(const Problem& problem, Call& call, std::int64_t length) {
  auto* unified = std::get_if<UnifiedCall>(&call);
  if (unified == nullptr || problem.mode != Mode::target_verify) return false;
  if (length < 1 || all_have_length(problem, length)) return false;
  set_equal_offsets(*unified, length);
  unified->max_seqlen_q = length;
  for (std::size_t i = 0; i < problem.requests.size(); ++i) {
    unified->seqused_k.values[i] = problem.requests[i].committed + length;
  }
  return true;
}

}  // namespace

bool verify_length_from_server_argument(const Problem& problem, const SlotMap&, Call& call) {
  return verify_with_one_length(problem, call, problem.num_draft_tokens.value_or(0));
}

bool verify_length_from_total_over_batch(const Problem& problem, const SlotMap&, Call& call) {
  const auto batch = static_cast<std::int64_t>(problem.requests.size());
  return verify_with_one_length(problem, call, problem.total_new_tokens() / batch);
}

bool qo_indptr_equal_lengths(const Problem& problem, const SlotMap&, Call& call) {
  auto* unified = std::get_if<UnifiedCall>(&call);
  const auto batch = static_cast<std::int64_t>(problem.requests.size());
  const std::int64_t total = problem.total_new_tokens();
  if (unified == nullptr || total % batch != 0 || all_have_length(problem, total / batch))
    return false;
  set_equal_offsets(*unified, total / batch);
  return true;
}

/// Offsets spaced by the number of draft steps where rows lie one token further apart.
bool qo_indptr_one_row_apart_too_little(const Problem& problem, const SlotMap&, Call& call) {
  auto* unified = std::get_if<UnifiedCall>(&call);
  const std::int64_t length = problem.max_new_tokens();
  if (unified == nullptr || problem.requests.size() < 2 || length < 2) return false;
  if (!all_have_length(problem, length)) return false;
  set_equal_offsets(*unified, length - 1);
  return true;
}

bool max_seqlen_q_one(const Problem& problem, const SlotMap&, Call& call) {
  auto* unified = std::get_if<UnifiedCall>(&call);
  if (unified == nullptr || problem.max_new_tokens() <= 1) return false;
  unified->max_seqlen_q = 1;
  return true;
}

bool start_loc_shifted(const Problem& problem, const SlotMap&, Call& call) {
  auto* extend = std::get_if<ExtendCall>(&call);
  if (extend == nullptr) return false;
  bool changed = false;
  for (std::size_t i = 1; i < extend->extend_start_loc.values.size(); ++i) {
    extend->extend_start_loc.values[i] -= 1;  // stays inside q
    changed = changed || problem.requests[i].live;
  }
  return changed;
}

bool max_len_extend_too_small(const Problem& problem, const SlotMap&, Call& call) {
  auto* extend = std::get_if<ExtendCall>(&call);
  if (extend == nullptr || extend->tree_mask || extend->max_len_extend <= 1) return false;
  extend->max_len_extend = problem.num_draft_tokens.value_or(1) < extend->max_len_extend
                               ? problem.num_draft_tokens.value_or(1)
                               : 1;
  return true;
}

}  // namespace attest
