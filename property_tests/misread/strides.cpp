// Addresses made of wrong strides.

#include <algorithm>

#include "property_tests/misread/misreading.hpp"

namespace attest {
namespace {

using Strides = KernelView::Strides;

/// A stride that a kernel takes for another.
struct StrideEdit {
  std::string id, says;
  std::function<void(const Seen&, const Lookup&, Strides&)> edit;
};

std::int64_t dim_of(const KernelView& view, PoolHalf half) {
  return half == PoolHalf::k ? view.model().head_dim : view.model().v_head_dim;
}
PoolHalf other(PoolHalf half) { return half == PoolHalf::k ? PoolHalf::v : PoolHalf::k; }

Strides of(const KernelView& view, PoolHalf half) {
  return half == PoolHalf::k ? view.k_strides : view.v_strides;
}

/// Tokens before heads, without gaps.
Strides dense(const KernelView& view, std::int64_t dim, std::int64_t heads) {
  return {view.page * heads * dim, heads * dim, dim};
}
/// Heads before tokens.
Strides heads_first(const KernelView& view, std::int64_t dim) {
  return {view.page * view.model().num_kv_heads * dim, dim, view.page * dim};
}

/// Replaces one stride, or all, by those that `make` has.
void add_replacements(std::vector<StrideEdit>& edits, const std::string& id,
                      const std::string& says,
                      const std::function<Strides(const KernelView&, PoolHalf)>& make) {
  struct Part {
    std::string id, says;
    bool page, slot, head;
  };
  const Part parts[] = {
      {"strides", "all strides are ", true, true, true},
      {"head_stride", "the head stride is ", false, false, true},
      {"token_stride", "the stride of tokens is ", false, true, false},
      {"page_stride", "the stride of pages is ", true, false, false},
      {"token_and_page_stride", "the strides of tokens and pages are ", true, true, false},
      {"token_and_head_stride", "the strides of tokens and heads are ", false, true, true}};
  for (const Part& part : parts) {
    edits.push_back({part.id + "_" + id, "where " + part.says + says,
                     [make, part](const Seen& s, const Lookup& l, Strides& strides) {
                       const Strides there = make(s.view, l.half);
                       if (part.page) strides.page = there.page;
                       if (part.slot) strides.slot = there.slot;
                       if (part.head) strides.head = there.head;
                     }});
  }
}

std::vector<StrideEdit> stride_edits() {
  std::vector<StrideEdit> edits;
  add_replacements(edits, "of_the_other_tensor", "those of the other tensor (of V those of K)",
                   [](const KernelView& v, PoolHalf half) { return of(v, other(half)); });
  add_replacements(edits, "taken_as_dense", "taken to be without gaps",
                   [](const KernelView& v, PoolHalf half) {
                     return dense(v, dim_of(v, half), v.model().num_kv_heads);
                   });
  add_replacements(edits, "dense_of_the_other_tensor", "those of the other tensor without gaps",
                   [](const KernelView& v, PoolHalf half) {
                     return dense(v, dim_of(v, other(half)), v.model().num_kv_heads);
                   });
  add_replacements(edits, "of_q_heads", "made with the number of q heads",
                   [](const KernelView& v, PoolHalf half) {
                     return dense(v, dim_of(v, half), v.model().num_q_heads);
                   });
  add_replacements(
      edits, "of_heads_before_tokens", "those of heads before tokens",
      [](const KernelView& v, PoolHalf half) { return heads_first(v, dim_of(v, half)); });
  const auto one = [&](const std::string& id, const std::string& says, void (*edit)(Strides&)) {
    edits.push_back({id, "where " + says,
                     [edit](const Seen&, const Lookup&, Strides& strides) { edit(strides); }});
  };
  one("token_and_head_strides_swapped", "the strides of tokens and heads are swapped",
      [](Strides& s) { std::swap(s.slot, s.head); });
  one("page_and_token_strides_swapped", "the strides of pages and tokens are swapped",
      [](Strides& s) { std::swap(s.slot, s.page); });
  one("page_stride_one_token_more", "pages lie a token further apart",
      [](Strides& s) { s.page += s.slot; });
  one("page_stride_one_token_less", "pages lie a token less apart",
      [](Strides& s) { s.page -= s.slot; });
  one("page_stride_doubled", "pages lie twice as far apart", [](Strides& s) { s.page *= 2; });
  one("page_stride_halved", "pages lie half as far apart", [](Strides& s) { s.page /= 2; });
  one("token_stride_doubled", "tokens lie twice as far apart", [](Strides& s) { s.slot *= 2; });
  one("token_stride_halved", "tokens lie half as far apart", [](Strides& s) { s.slot /= 2; });
  one("head_stride_doubled", "heads lie twice as far apart", [](Strides& s) { s.head *= 2; });
  one("head_stride_halved", "heads lie half as far apart", [](Strides& s) { s.head /= 2; });
  one("token_stride_one_head_more", "tokens lie a head further apart",
      [](Strides& s) { s.slot += s.head; });
  one("token_stride_one_head_less", "tokens lie a head less apart",
      [](Strides& s) { s.slot -= s.head; });
  one("token_stride_of_a_head", "tokens lie as far apart as heads",
      [](Strides& s) { s.slot = s.head; });
  one("token_stride_0", "tokens lie on top of one another", [](Strides& s) { s.slot = 0; });
  return edits;
}

}  // namespace

void add_stride_misreadings(std::vector<Misreading>& all) {
  const auto add = [&](const Operand& operand, const StrideEdit& edit) {
    Misreading& one = all.emplace_back(of_operand(operand, edit.id, "from " + edit.says));
    one.address = [edit = edit.edit](const Seen& s, Lookup& l) {
      const Lookup before = l;
      edit(s, before, l.strides);
    };
  };
  const std::vector<StrideEdit> edits = stride_edits();
  // One tensor with the other's strides is the likelier mistake.
  for (const Operand& operand : operands()) {
    for (const StrideEdit& edit : edits) add(operand, edit);
  }
}

}  // namespace attest
