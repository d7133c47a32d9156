#include <algorithm>

#include "property_tests/generators.hpp"

namespace attest {
namespace {

bool uneven(const Problem& problem) {
  return std::any_of(problem.requests.begin(), problem.requests.end(), [&](const Request& r) {
    return r.new_tokens != problem.requests.front().new_tokens;
  });
}

bool past_2_gib(const Problem& problem) {
  const Model& m = problem.model;
  const std::int64_t slot = problem.pool.k.slot ? problem.pool.k.slot : m.num_kv_heads * m.head_dim;
  const auto bytes = static_cast<std::int64_t>(size_bytes(m.kv_dtype));
  return problem.pool.num_pages * problem.pool.page_size * slot * bytes >= std::int64_t{1} << 31;
}

template <class Predicate>
bool any_request(const Problem& problem, Predicate&& holds) {
  return std::any_of(problem.requests.begin(), problem.requests.end(), holds);
}

std::string_view heads(const Model& model) {
  if (model.num_kv_heads == model.num_q_heads) return "mha";
  return model.num_kv_heads == 1 ? "mqa" : "gqa";
}

}  // namespace

std::vector<std::string> features_of(const Case& c) {
  const Problem& problem = c.problem;
  const Model& model = problem.model;
  std::vector<std::string> words = {std::string(name(problem.mode)), std::string(name(c.recipe)),
                                    std::string(model.mla ? "mla" : heads(model)),
                                    "page " + std::to_string(problem.pool.page_size),
                                    std::string(name(model.kv_dtype)) + " kv"};
  const auto add = [&](bool present, const char* word) {
    if (present) words.emplace_back(word);
  };
  add(uneven(problem), "uneven");
  add(model.window.has_value(), "window");
  add(model.softcap > 0, "softcap");
  add(model.sinks, "sinks");
  add(any_request(problem, [](const Request& r) { return !r.tree_parent.empty(); }), "tree");
  add(any_request(problem, [](const Request& r) { return r.shared_prefix > 0; }), "shared prefix");
  add(any_request(problem, [](const Request& r) { return !r.live; }), "padded rows");
  add(any_request(problem, [](const Request& r) { return r.committed == 0; }), "nothing committed");
  add(any_request(problem, [](const Request& r) { return r.encoder_tokens > 0; }), "encoder");
  add(!problem.pool.slots.empty(), "evicted pages");
  add(problem.pool.k.slot != 0, "strided pool");
  add(past_2_gib(problem), "pool past 2 GiB");
  add(model.head_dim != model.v_head_dim, "narrower v");
  add(problem.topk > 1 && problem.mode == Mode::draft_decode, "draft branches");
  add(!c.fault.empty(), "fault");
  return words;
}

}  // namespace attest
