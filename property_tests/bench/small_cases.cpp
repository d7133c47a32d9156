#include "property_tests/bench/small_cases.hpp"

namespace attest {
namespace {

struct Row {
  Mode mode;
  std::int64_t page_size;
  Recipe recipe;
  std::int64_t window;  ///< 0 = off
  double softcap;
  bool sinks;
  std::vector<std::array<std::int64_t, 2>> requests;  ///< committed, new
};

const std::vector<Row>& rows() {
  using enum Mode;
  using enum Recipe;
  static const std::vector<Row> table = {
      {decode, 16, normal, 0, 0, false, {{511, 1}}},
      {decode, 16, recall, 0, 0, false, {{100, 1}, {7, 1}, {480, 1}, {31, 1}}},
      {decode, 64, needle, 0, 0, false, {{255, 1}, {256, 1}, {257, 1}}},
      {decode, 64, features, 128, 0, true, {{400, 1}, {12, 1}}},
      {decode, 32, normal, 0, 50, false, {{300, 1}, {200, 1}}},
      {decode, 1, recall, 0, 0, false, {{150, 1}, {149, 1}}},
      {target_verify, 16, normal, 0, 0, false, {{500, 4}, {40, 3}}},
      {target_verify, 16, recall, 0, 0, false, {{131, 4}, {64, 2}, {9, 5}}},
      {target_verify, 64, recall, 0, 0, false, {{448, 8}, {256, 3}}},
      {target_verify, 64, needle, 0, 0, false, {{60, 5}, {61, 4}, {63, 2}, {64, 3}}},
      {target_verify, 64, features, 100, 0, true, {{300, 4}, {90, 6}}},
      {target_verify, 32, normal, 64, 30, false, {{200, 4}, {10, 7}}},
      {target_verify, 1, recall, 0, 0, false, {{77, 3}, {78, 4}}},
      {target_verify, 128, normal, 0, 0, false, {{384, 16}}},
      {extend, 16, normal, 0, 0, false, {{0, 64}}},
      {extend, 64, recall, 0, 0, false, {{128, 32}, {0, 17}}},
      {extend, 64, needle, 0, 0, false, {{300, 20}}},
      {extend, 32, features, 48, 0, true, {{64, 33}, {10, 9}}},
      {draft_extend_v2, 16, normal, 0, 0, false, {{505, 5}, {101, 3}}},
      {draft_extend_v2, 64, recall, 0, 0, false, {{255, 4}, {380, 2}, {1, 1}}},
      {draft_extend_v2, 64, normal, 31, 0, false, {{450, 6}}},
      {draft_decode, 16, recall, 0, 0, false, {{120, 1}, {121, 1}, {60, 1}}},
      {draft_decode, 64, normal, 0, 0, false, {{510, 1}, {330, 1}}},
      {mixed, 64, recall, 0, 0, false, {{256, 1}, {0, 40}, {95, 3}}},
  };
  return table;
}

Case case_of_row(const Row& row, std::uint64_t seed) {
  Case c;
  Problem& problem = c.problem;
  problem.model.num_q_heads = 8;
  problem.model.num_kv_heads = 2;
  problem.model.softcap = row.softcap;
  problem.model.sinks = row.sinks;
  if (row.window > 0) problem.model.window = row.window;
  problem.mode = row.mode;
  problem.pool.page_size = row.page_size;
  problem.pool.seed = seed;
  std::int64_t pages = 1;
  for (const auto& [committed, fresh] : row.requests) {
    const auto sequence = static_cast<std::int64_t>(problem.requests.size());
    problem.requests.push_back({.sequence = sequence, .committed = committed, .new_tokens = fresh});
    pages += (committed + fresh + row.page_size - 1) / row.page_size;
  }
  problem.pool.num_pages = pages;
  c.recipe = row.recipe;
  c.seed = seed;
  c.origin = "bench case " + std::to_string(seed);
  return c;
}

}  // namespace

std::vector<Case> small_cases() {
  std::vector<Case> cases;
  for (const Row& row : rows()) cases.push_back(case_of_row(row, cases.size()));
  return cases;
}

}  // namespace attest
