#include "contracts/signatures/refusals.hpp"

#include <algorithm>
#include <limits>

namespace attest {

std::optional<std::string> refuses_cross_attention(const Problem& problem,
                                                   std::string_view signature) {
  if (problem.model.cross_attention) {
    return std::string(signature) + " is causal, cross attention is not";
  }
  for (std::size_t i = 0; i < problem.requests.size(); ++i) {
    if (problem.requests[i].encoder_tokens == 0) continue;
    return std::string(signature) + " has no place for encoder tokens, request " +
           std::to_string(i) + " has " + std::to_string(problem.requests[i].encoder_tokens);
  }
  return std::nullopt;
}

std::int64_t first_visible(const Model& model, const Request& request) {
  if (!model.window) return 0;
  return std::max<std::int64_t>(0, request.committed - *model.window + 1);
}

std::optional<std::string> refuses_evicted_keys(const Problem& problem, const SlotMap& slots) {
  for (std::size_t i = 0; i < problem.requests.size(); ++i) {
    const Request& r = problem.requests[i];
    if (!r.live || r.new_tokens == 0) continue;
    for (std::int64_t t = first_visible(problem.model, r); t < r.kv_len();
         t += slots.page_size - t % slots.page_size) {
      if (slots.slot(i, t) >= 0) continue;
      return "token " + std::to_string(t) + " of request " + std::to_string(i) +
             " is evicted, but a new token sees it";
    }
  }
  return std::nullopt;
}

std::optional<std::string> refuses_wide_ids(std::int64_t count, std::string_view what) {
  if (count <= std::numeric_limits<std::int32_t>::max()) return std::nullopt;
  return std::to_string(count) + " " + std::string(what) + " do not fit int32 ids";
}

std::optional<std::string> refuses_wide_slot_lists(const Problem& problem) {
  std::int64_t tokens = 0;
  for (const Request& r : problem.requests) tokens += r.kv_len();
  if (auto reason = refuses_wide_ids(tokens, "keys of the batch")) return reason;
  return refuses_wide_ids(problem.pool.num_pages * problem.pool.page_size, "slots");
}

bool is_chain(const Request& request) {
  for (std::size_t t = 0; t < request.tree_parent.size(); ++t) {
    if (request.tree_parent[t] != static_cast<std::int64_t>(t) - 1) return false;
  }
  return true;
}

std::optional<std::string> refuses_draft_tree(const Problem& problem, std::string_view signature) {
  for (std::size_t i = 0; i < problem.requests.size(); ++i) {
    if (is_chain(problem.requests[i])) continue;
    return std::string(signature) + " has no tree mask, the drafts of request " +
           std::to_string(i) + " are not a chain";
  }
  return std::nullopt;
}

}  // namespace attest
