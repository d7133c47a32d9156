#include "property_tests/support_table.hpp"

#include <algorithm>
#include <array>
#include <map>

#include "contracts/signatures.hpp"
#include "contracts/slot_map.hpp"
#include "property_tests/report/text_table.hpp"

namespace attest {
namespace {

void dtypes(Problem& p, Dtype q, Dtype kv) {
  p.model.q_dtype = q;
  p.model.kv_dtype = kv;
  p.model.out_dtype = is_fp8(q) ? Dtype::bf16 : q;
}

/// Two requests of a verify step, pages of 16, the first dtypes that the kernel lists.
Problem plain_step(const Capabilities& can) {
  const Signature signature = can.signature;
  Problem p;
  dtypes(p, can.q_dtypes.front(), can.kv_dtypes.front());
  p.mode = Mode::target_verify;
  p.model.num_q_heads = 8;
  p.model.num_kv_heads = 2;
  p.model.head_dim = p.model.v_head_dim = 64;
  p.pool = {.page_size = 16, .num_pages = 40, .k = {}, .v = {}, .seed = 5, .slots = {}};
  if (signature == Signature::mla_decode) {
    p.model.mla = true;
    p.model.num_kv_heads = 1;
    p.model.num_q_heads = 16;
    p.model.head_dim = 576;
    p.model.v_head_dim = 512;
  }
  for (const std::int64_t committed : {130, 40}) {
    Request request;
    request.sequence = static_cast<std::int64_t>(p.requests.size()) + 1;
    request.committed = committed;
    request.new_tokens = 4;
    p.requests.push_back(request);
  }
  p.num_draft_tokens = 4;
  if (signature == Signature::decode || signature == Signature::paged_ragged) {
    p.mode = Mode::decode;
    p.num_draft_tokens.reset();
    for (Request& request : p.requests) request.new_tokens = 1;
  }
  return p;
}

constexpr std::array features = {
    Feature{"plain", [](Problem&) {}},
    Feature{"uneven", [](Problem& p) { p.requests.front().new_tokens = 1; }},
    Feature{"window", [](Problem& p) { p.model.window = 33; }},
    Feature{"softcap", [](Problem& p) { p.model.softcap = 30; }},
    Feature{"sinks", [](Problem& p) { p.model.sinks = true; }},
    Feature{"draft tree",
            [](Problem& p) {
              for (Request& r : p.requests) r.tree_parent = {-1, 0, 0, 1};
            }},
    Feature{"narrower v", [](Problem& p) { p.model.v_head_dim = 32; }},
    Feature{"f16", [](Problem& p) { dtypes(p, Dtype::f16, Dtype::f16); }},
    Feature{"f32", [](Problem& p) { dtypes(p, Dtype::f32, Dtype::f32); }},
    Feature{"fp8_e4m3fn kv", [](Problem& p) { dtypes(p, Dtype::bf16, Dtype::fp8_e4m3fn); }},
    Feature{"page 1",
            [](Problem& p) {
              p.pool = {.page_size = 1, .num_pages = 600, .k = {}, .v = {}, .seed = 5, .slots = {}};
            }},
    Feature{"page 48", [](Problem& p) { p.pool.page_size = 48; }},
    Feature{"page 64", [](Problem& p) { p.pool.page_size = 64; }},
    Feature{"head_dim 80", [](Problem& p) { p.model.head_dim = p.model.v_head_dim = 80; }},
    Feature{"head_dim 256", [](Problem& p) { p.model.head_dim = p.model.v_head_dim = 256; }},
    Feature{"strided pool",
            [](Problem& p) {
              p.pool.k = p.pool.v = {.page = 16 * 2 * 72, .slot = 2 * 72, .head = 72};
            }},
    Feature{"pool past 2 GiB",
            [](Problem& p) {
              p.pool.num_pages = std::int64_t{1} << 21;
              p.pool.placement = Placement::high;
            }},
};

bool lists(const std::vector<Dtype>& dtypes, Dtype dtype) {
  return std::find(dtypes.begin(), dtypes.end(), dtype) != dtypes.end();
}

/// Of the features that a backend claims, not answers for.
Answer claimed(const Capabilities& can, const Problem& p) {
  const Model& model = p.model;
  const bool tree = std::any_of(p.requests.begin(), p.requests.end(),
                                [](const Request& r) { return !r.tree_parent.empty(); });
  const auto no = [](const char* what) { return Answer::no(std::string("claims no ") + what); };
  if (!lists(can.q_dtypes, model.q_dtype)) return no("such q");
  if (!lists(can.kv_dtypes, model.kv_dtype)) return no("such K and V");
  if (model.window && !can.window) return no("window");
  if (model.softcap > 0 && !can.softcap) return no("softcap");
  if (model.sinks && !can.sinks) return no("sinks");
  if (tree && !can.tree_mask) return no("draft trees");
  if (!model.mla && model.head_dim != model.v_head_dim && !can.distinct_v_head_dim) {
    return no("V narrower than K");
  }
  const auto& pages = can.page_sizes;
  if (!pages.empty() && std::find(pages.begin(), pages.end(), p.pool.page_size) == pages.end()) {
    return no("pages of that size");
  }
  return {};
}

}  // namespace

std::span<const Feature> all_features() { return features; }

Support support_of(const Backend& backend, const Feature& feature) {
  const Capabilities& can = backend.capabilities();
  Problem problem = plain_step(can);
  feature.put(problem);
  if (problem_error(problem)) return {.expressible = false, .answer = {}};
  const auto call = lower(can.signature, problem, make_slot_map(problem));
  if (std::holds_alternative<Unsupported>(call)) return {.expressible = false, .answer = {}};
  if (Answer answer = claimed(can, problem); !answer) return {true, answer};
  return {true, backend.supports(std::get<Call>(call))};
}

std::string support_text(std::span<const Backend* const> backends) {
  std::vector<TextTable::Column> columns = {{"backend"}};
  for (const Feature& feature : features) columns.push_back({std::string(feature.name)});
  TextTable table(columns);
  std::map<std::string, std::string> reasons;  // in words: which features
  for (const Backend* backend : backends) {
    std::vector<std::string> row = {std::string(backend->name())};
    for (const Feature& feature : features) {
      const Support support = support_of(*backend, feature);
      row.emplace_back(!support.expressible ? "-" : support.answer ? "yes" : "no");
      if (!support.expressible || support.answer) continue;
      std::string& list = reasons[row.front() + ": " + support.answer.reason];
      list += (list.empty() ? "" : ", ") + std::string(feature.name);
    }
    table.add(row);
  }
  std::string text = table.str() + "\n-: the signature cannot pass it\n";
  for (const auto& [reason, which] : reasons) {
    text.append(reason).append(" (").append(which).append(")\n");
  }
  return text;
}

}  // namespace attest
