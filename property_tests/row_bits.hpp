#pragma once

#include <bit>
#include <cstdint>
#include <map>
#include <optional>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

#include "backends/backend.hpp"
#include "property_tests/case.hpp"

namespace attest {

/// For relation tests: the output bits of every live row by the token it belongs to, (sequence,
/// position), wherever the row stands in the batch.
using RowBits = std::map<std::pair<std::int64_t, std::int64_t>, std::vector<std::uint32_t>>;

/// Runs a call for the case's tensors. \throws std::runtime_error when the kernel refuses.
inline RowBits run_call(const Case& c, const Call& call, const Backend& backend,
                        const RunOptions& options = {}) {
  const TensorSource source(c.problem, c.recipe, c.seed, c.poison);
  const RunResult result = backend.run(call, source, options);
  if (result.raised) throw std::runtime_error("raised: " + *result.raised);
  RowBits rows;
  std::int64_t row = 0;
  for (const Request& request : c.problem.requests) {
    for (std::int64_t t = 0; t < request.new_tokens; ++t, ++row) {
      if (!request.live) continue;
      std::vector<std::uint32_t>& bits = rows[{request.sequence, request.committed + t}];
      for (std::int64_t h = 0; h < result.out.heads; ++h) {
        for (std::int64_t d = 0; d < result.out.dim; ++d) {
          bits.push_back(
              std::bit_cast<std::uint32_t>(result.out.values[result.out.index(row, h, d)]));
        }
      }
    }
  }
  return rows;
}

/// The same for the lowered call. \throws std::runtime_error when it does not lower.
inline RowBits run_rows(const Case& c, const Backend& backend, const RunOptions& options = {}) {
  const auto call = call_of(c, make_slot_map(c.problem));
  if (const auto* no = std::get_if<Unsupported>(&call)) throw std::runtime_error(no->reason);
  return run_call(c, std::get<Call>(call), backend, options);
}

}  // namespace attest
