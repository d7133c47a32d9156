#include "contracts/signatures/sample_problems.hpp"

#include "contracts/slot_map.hpp"

namespace attest {

void fit_pool(Problem& problem) { problem.pool.num_pages = pages_needed(problem) + 4; }

Problem sample_problem(Mode mode, const std::vector<Lengths>& requests) {
  Problem p;
  p.model.num_q_heads = 4;
  p.model.num_kv_heads = 2;
  p.model.head_dim = 32;
  p.model.v_head_dim = 32;
  p.mode = mode;
  p.pool.page_size = 16;
  p.pool.seed = 5;
  for (const Lengths& lengths : requests) {
    Request r;
    r.sequence = static_cast<std::int64_t>(p.requests.size()) + 10;
    r.committed = lengths.committed;
    r.new_tokens = lengths.new_tokens;
    p.requests.push_back(r);
  }
  fit_pool(p);
  return p;
}

Problem sample_mla_problem(Mode mode, const std::vector<Lengths>& requests) {
  Problem p = sample_problem(mode, requests);
  p.model.mla = true;
  p.model.num_q_heads = 16;
  p.model.num_kv_heads = 1;
  p.model.head_dim = 576;
  p.model.v_head_dim = 512;
  p.model.softmax_scale = 0.0721687836487032;
  return p;
}

}  // namespace attest
