#include "contracts/rules/tree_mask.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "contracts/rules/finding_text.hpp"
#include "contracts/signatures/cpu_kernels.hpp"
#include "contracts/signatures/refusals.hpp"

namespace attest {
namespace {

std::string at(std::size_t i, std::int64_t t, std::int64_t u) {
  return entry(entry("tree_mask", static_cast<std::int64_t>(i), t), u);
}

/// The square of one request, as the kernel indexes it.
class Square {
 public:
  Square(const IntArray& mask, std::int64_t side, std::size_t i)
      : side_(static_cast<std::size_t>(side)), values_(mask.values.data() + i * side_ * side_) {}
  bool sees(std::int64_t t, std::int64_t u) const {
    return values_[static_cast<std::size_t>(t) * side_ + static_cast<std::size_t>(u)] != 0;
  }

 private:
  std::size_t side_;
  const std::int64_t* values_;
};

/// Calls f(i, request, square) for live requests whose new tokens fit in a square of the mask.
template <class F>
void each_square(const ExtendCall& c, const Truth& truth, Report& report, F f) {
  if (!c.tree_mask || !recorded(*c.tree_mask, "tree_mask", report)) return;
  for (std::size_t i = 0; i < truth.problem.requests.size(); ++i) {
    const Request& r = truth.problem.requests[i];
    if (r.live && r.new_tokens <= c.max_len_extend)
      f(i, r, Square(*c.tree_mask, c.max_len_extend, i));
  }
}

void is_given_for_trees(const ExtendCall& c, const Truth& truth, Report& report) {
  const Problem& p = truth.problem;
  const bool trees = !std::all_of(p.requests.begin(), p.requests.end(),
                                  [](const Request& r) { return !r.live || is_chain(r); });
  const bool server = p.mode == Mode::target_verify && p.topk != 1;
  if (trees && !c.tree_mask) {
    report.add("tree_mask", "absent", "a mask: the drafts are no chain");
  } else if (!trees && c.tree_mask.has_value() != server) {
    report.add(Severity::policy, "tree_mask", c.tree_mask ? "present" : "absent",
               server ? "present, the server drafts " + std::to_string(p.topk) + " branches"
                      : "absent, every draft is a chain");
  }
}

void verifies_one_length(const ExtendCall& c, const Truth& truth, Report& report) {
  if (!c.tree_mask || !recorded(c.extend_seq_lens, "extend_seq_lens", report)) return;
  for (std::size_t i = 0; i < truth.problem.requests.size(); ++i) {
    if (c.extend_seq_lens[i] == c.max_len_extend) continue;
    report.add(entry("extend_seq_lens", static_cast<std::int64_t>(i)),
               std::to_string(c.extend_seq_lens[i]),
               std::to_string(c.max_len_extend) + " = max_len_extend, with a tree_mask");
  }
}

/// seen[u]: u is token t or one of its ancestors.
std::vector<bool> ancestors(const Request& r, std::int64_t t) {
  std::vector<bool> seen(static_cast<std::size_t>(r.new_tokens), false);
  for (std::int64_t u = t; u >= 0;) {
    const auto token = static_cast<std::size_t>(u);
    seen[token] = true;
    u = r.tree_parent.empty() ? u - 1 : r.tree_parent[token];
  }
  return seen;
}

void is_the_tree(const ExtendCall& c, const Truth& truth, Report& report) {
  each_square(c, truth, report, [&](std::size_t i, const Request& r, const Square& mask) {
    for (std::int64_t t = 0; t < r.new_tokens; ++t) {
      const std::vector<bool> seen = ancestors(r, t);
      for (std::int64_t u = 0; u < r.new_tokens; ++u) {
        const bool wanted = seen[static_cast<std::size_t>(u)];
        if (mask.sees(t, u) == wanted) continue;
        report.add(at(i, t, u), wanted ? "0" : "1",
                   std::string(wanted ? "1" : "0") + ", token " + std::to_string(u) +
                       (wanted ? " is " : " is not ") + "on the path of token " +
                       std::to_string(t));
      }
    }
  });
}

void shows_every_token_itself(const ExtendCall& c, const Truth& truth, Report& report) {
  each_square(c, truth, report, [&](std::size_t i, const Request& r, const Square& mask) {
    for (std::int64_t t = 0; t < r.new_tokens; ++t) {
      if (mask.sees(t, t)) continue;
      bool any = r.committed > 0;
      for (std::int64_t u = 0; u < r.new_tokens && !any; ++u) any = mask.sees(t, u);
      report.add(any ? Severity::wrong : Severity::fault, at(i, t, t), "0",
                 any ? "1" : "1: this row sees no key at all and becomes NaN");
    }
  });
}

void looks_only_back(const ExtendCall& c, const Truth& truth, Report& report) {
  const std::int64_t block = extend_block_rows(c.max_len_extend);
  each_square(c, truth, report, [&](std::size_t i, const Request& r, const Square& mask) {
    for (std::int64_t t = 0; t < r.new_tokens; ++t) {
      for (std::int64_t u = t + 1; u < r.new_tokens; ++u) {
        if (!mask.sees(t, u)) continue;
        const bool visited = u < (t / block + 1) * block;
        report.add(visited ? Severity::policy : Severity::wrong, at(i, t, u), "1",
                   visited ? "0 above the diagonal: honoured only inside the query's block"
                           : "0 above the diagonal: the kernel never visits this key");
      }
    }
  });
}

constexpr Rule rules[] = {
    {.id = "tree_mask.is_given_for_trees",
     .says = "verification passes a mask where the server drafts trees, and none for chains",
     .why = "without it every draft sees its siblings' tokens as if they were its own",
     .source = "sgl-project/sglang intel_amx_backend.py, custom_mask iff topk != 1",
     .severity = Severity::wrong,
     .extend = is_given_for_trees},
    {.id = "tree_mask.verifies_one_length",
     .says = "with a mask every request has max_len_extend new tokens",
     .why = "the mask is a square for each request and the kernel refuses other lengths",
     .source = "sgl-project/sglang sgl-kernel/csrc/cpu/extend.cpp, tree_mask",
     .severity = Severity::fault,
     .extend = verifies_one_length},
    {.id = "tree_mask.is_the_draft_tree",
     .says = "row t of the mask shows token t, its ancestors and nothing else",
     .why = "a draft that sees another branch is verified in the wrong context and accepted or "
            "refused by chance",
     .source = "sgl-project/sglang spec.cpp, build_tree_kernel_efficient_cpu",
     .severity = Severity::wrong,
     .extend = is_the_tree},
    {.id = "tree_mask.shows_every_token_itself",
     .says = "the diagonal of every square is true",
     .why = "a row without any visible key is NaN where the prefix is empty, and attends the "
            "prefix alone elsewhere",
     .source = "sgl-project/sglang spec.cpp, build_tree_kernel_efficient_cpu",
     .severity = Severity::wrong,
     .extend = shows_every_token_itself},
    {.id = "tree_mask.looks_only_back",
     .says = "no entry above the diagonal is true",
     .why = "the kernel stops at the query's own block of rows: an all-visible block of more than "
            "32 drafts silently loses keys",
     .source = "sgl-project/sglang sgl-kernel/csrc/cpu/extend.cpp, stage 2",
     .severity = Severity::wrong,
     .extend = looks_only_back},
};

}  // namespace

std::span<const Rule> tree_mask_rules() { return rules; }

}  // namespace attest
