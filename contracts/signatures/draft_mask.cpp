#include "contracts/signatures/draft_mask.hpp"

namespace attest {

void show_ancestors(const Request& request, std::int64_t t, std::span<std::int64_t> row) {
  for (std::int64_t u = t; u >= 0;) {
    const auto token = static_cast<std::size_t>(u);
    row[token] = 1;
    u = request.tree_parent.empty() ? u - 1 : request.tree_parent[token];
  }
}

}  // namespace attest
