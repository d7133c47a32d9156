#pragma once

#include <cstdint>
#include <span>

#include "contracts/problem.hpp"

namespace attest {

/// Sets row[u] = 1 for token t of the request and its ancestors. \pre row.size() > t
void show_ancestors(const Request& request, std::int64_t t, std::span<std::int64_t> row);

}  // namespace attest
