#pragma once

#include <cstdint>
#include <vector>

#include "contracts/problem.hpp"

namespace attest {

/// Committed and new tokens of one request.
struct Lengths {
  std::int64_t committed = 0;
  std::int64_t new_tokens = 1;
};

/// A small legal problem for tests and examples: 4:2 heads of 32, pages of 16, permuted, four pages
/// of room. Every request is its own sequence.
Problem sample_problem(Mode mode, const std::vector<Lengths>& requests);

/// The same as an MLA layer: 16 heads over one latent head of 576, values its first 512 elements.
Problem sample_mla_problem(Mode mode, const std::vector<Lengths>& requests);

/// Gives the pool room for the batch after lengths or the page size have changed.
void fit_pool(Problem& problem);

}  // namespace attest
