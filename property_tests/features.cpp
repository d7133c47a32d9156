#include <algorithm>
#include <array>
#include <cctype>

#include "property_tests/case_features.hpp"
#include "property_tests/feature_words.hpp"
#include "property_tests/generators.hpp"
#include "property_tests/large_kv.hpp"

namespace attest {
namespace {

constexpr std::array modes = {Mode::decode,      Mode::idle,          Mode::extend,
                              Mode::mixed,       Mode::target_verify, Mode::draft_extend_v2,
                              Mode::draft_decode};
constexpr std::array recipes = {
    Recipe::normal,    Recipe::recall,  Recipe::needle,   Recipe::features,  Recipe::shifted,
    Recipe::normal_20, Recipe::uniform, Recipe::positive, Recipe::small_int, Recipe::sparse_int};
constexpr std::array kv_dtypes = {Dtype::f32, Dtype::f16, Dtype::bf16, Dtype::fp8_e4m3fn,
                                  Dtype::fp8_e4m3fnuz};

bool uneven(const Case& c) {
  const Problem& problem = c.problem;
  return std::any_of(problem.requests.begin(), problem.requests.end(), [&](const Request& r) {
    return r.new_tokens != problem.requests.front().new_tokens;
  });
}

bool past_2_gib(const Case& c) {
  const Problem& problem = c.problem;
  const Model& m = problem.model;
  const std::int64_t slot = problem.pool.k.slot ? problem.pool.k.slot : m.num_kv_heads * m.head_dim;
  const auto bytes = static_cast<std::int64_t>(size_bytes(m.kv_dtype));
  return problem.pool.num_pages * problem.pool.page_size * slot * bytes >= std::int64_t{1} << 31;
}

template <class Predicate>
bool any_request(const Case& c, Predicate&& holds) {
  return std::any_of(c.problem.requests.begin(), c.problem.requests.end(), holds);
}

std::string_view heads(const Model& model) {
  if (model.mla) return "mla";
  if (model.num_kv_heads == model.num_q_heads) return "mha";
  return model.num_kv_heads == 1 ? "mqa" : "gqa";
}

constexpr CaseFeature features[] = {
    {"uneven", "requests have different numbers of new tokens", uneven},
    {"window", "the layer sees a limited number of keys",
     [](const Case& c) { return c.problem.model.window.has_value(); }},
    {"softcap", "logits are capped", [](const Case& c) { return c.problem.model.softcap > 0; }},
    {"sinks", "every q head has a sink logit", [](const Case& c) { return c.problem.model.sinks; }},
    {"tree", "a request's new tokens are a draft tree",
     [](const Case& c) {
       return any_request(c, [](const Request& r) { return !r.tree_parent.empty(); });
     }},
    {"shared prefix", "requests share keys, as from a radix cache",
     [](const Case& c) {
       return any_request(c, [](const Request& r) { return r.shared_prefix > 0; });
     }},
    {"padded rows", "some requests are padding, as in a replayed graph",
     [](const Case& c) { return any_request(c, [](const Request& r) { return !r.live; }); }},
    {"nothing committed", "a request has no key from before the step",
     [](const Case& c) {
       return any_request(c, [](const Request& r) { return r.committed == 0; });
     }},
    {"encoder", "a request has an encoder's keys in front of its text",
     [](const Case& c) {
       return any_request(c, [](const Request& r) { return r.encoder_tokens > 0; });
     }},
    {"evicted pages", "slots are listed, those of keys older than the window given back",
     [](const Case& c) { return !c.problem.pool.slots.empty(); }},
    {"strided pool", "the pool's rows have gaps, or K and V are interleaved",
     [](const Case& c) { return c.problem.pool.k.slot != 0; }},
    {"pool past 2 GiB", "the layer's K takes 2^31 bytes or more", past_2_gib},
    {"narrower v", "heads of V have another size than those of K",
     [](const Case& c) { return c.problem.model.head_dim != c.problem.model.v_head_dim; }},
    {"draft branches", "draft decode of several branches a request",
     [](const Case& c) { return c.problem.topk > 1 && c.problem.mode == Mode::draft_decode; }},
    {"fault", "a metadata fault is put into the call",
     [](const Case& c) { return !c.fault.empty(); }},
};

std::string kv_word(Dtype dtype) { return std::string(name(dtype)) + " kv"; }

}  // namespace

std::span<const CaseFeature> all_case_features() { return features; }

std::vector<std::string> features_of(const Case& c) {
  const Problem& problem = c.problem;
  std::vector<std::string> words = {std::string(name(problem.mode)), std::string(name(c.recipe)),
                                    std::string(heads(problem.model)),
                                    "page " + std::to_string(problem.pool.page_size),
                                    kv_word(problem.model.kv_dtype)};
  for (const CaseFeature& feature : features) {
    if (feature.has(c)) words.emplace_back(feature.name);
  }
  return words;
}

std::vector<std::string> feature_words() {
  std::vector<std::string> words;
  words.reserve(64);
  for (const Mode mode : modes) words.emplace_back(name(mode));
  for (const Recipe recipe : recipes) words.emplace_back(name(recipe));
  words.insert(words.end(), {"mla", "mha", "mqa", "gqa", "page N"});
  for (const Dtype dtype : kv_dtypes) words.push_back(kv_word(dtype));
  for (const CaseFeature& feature : features) words.emplace_back(feature.name);
  // Of --profile large-kv.
  for (const Boundary& boundary : all_boundaries()) words.push_back(name(boundary));
  for (const Side side : {Side::below, Side::straddling, Side::above}) {
    words.emplace_back(name(side));
  }
  for (const LargeKvBy by :
       {LargeKvBy::page_ids, LargeKvBy::strides, LargeKvBy::view, LargeKvBy::decoys}) {
    words.emplace_back(name(by));
  }
  for (const Dtype dtype : kv_dtypes) words.emplace_back(name(dtype));
  return words;
}

bool is_feature_word(std::string_view word) {
  constexpr std::string_view page = "page ";
  const std::string_view size = word.substr(std::min(word.size(), page.size()));
  if (word.starts_with(page) && !size.empty() &&
      std::all_of(size.begin(), size.end(), [](unsigned char c) { return std::isdigit(c) != 0; })) {
    return true;
  }
  const std::vector<std::string> words = feature_words();
  return word != "page N" && std::find(words.begin(), words.end(), word) != words.end();
}

}  // namespace attest
