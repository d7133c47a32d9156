#include <algorithm>
#include <array>

#include "property_tests/diagnose.hpp"
#include "property_tests/meaning_edits.hpp"

namespace attest {
namespace {

bool prefix_hole(const Problem& p, Attended& m) {
  return edit_keys(m, [&](const AttendedRow& row, std::vector<KeyRun>& keys) {
    const Request& r = request_of(p, row);
    const std::int64_t hole = std::max<std::int64_t>(0, r.committed - r.new_tokens);
    if (p.model.window && !p.model.cross_attention && r.tree_parent.empty()) {
      // A window counts what is left, so it begins earlier by what is missing.
      const std::int64_t position = r.committed + row.token - (r.committed - hole);
      keys.clear();
      add_positions(r, position - *p.model.window + 1, hole, keys);
      add_positions(r, r.committed + std::max<std::int64_t>(0, row.token - *p.model.window + 1),
                    r.committed + row.token + 1, keys);
      return;
    }
    drop_positions(keys, hole, r.committed);
  });
}

bool total_short_by_new(const Problem& p, Attended& m) {
  return see_positions(p, m, [](const Request& r, std::int64_t, std::int64_t&, std::int64_t& last) {
    last -= r.new_tokens;
  });
}

bool without_draft_step(const Problem& p, Attended& m) {
  if (p.mode != Mode::draft_decode) return false;
  return see_positions(p, m, [&](const Request&, std::int64_t, std::int64_t&, std::int64_t& last) {
    last -= p.draft_step + 1;
  });
}

bool all_see_all_drafts(const Problem& p, Attended& m) {
  return see_positions(p, m, [](const Request& r, std::int64_t, std::int64_t&, std::int64_t& last) {
    last = r.kv_len();
  });
}

bool causal_long(const Problem& p, Attended& m) {
  return see_positions(
      p, m, [](const Request&, std::int64_t, std::int64_t&, std::int64_t& last) { ++last; });
}

bool causal_short(const Problem& p, Attended& m) {
  return see_positions(
      p, m, [](const Request&, std::int64_t, std::int64_t&, std::int64_t& last) { --last; });
}

/// Mask and window alike count from the position before the row's own.
bool positions_one_early(const Problem& p, Attended& m) {
  return see_positions(p, m,
                       [&](const Request&, std::int64_t, std::int64_t& first, std::int64_t& last) {
                         --last;
                         if (p.model.window)
                           first = std::max<std::int64_t>(0, last - *p.model.window);
                       });
}

/// The last row has no later position.
bool positions_one_late(const Problem& p, Attended& m) {
  return see_positions(
      p, m, [&](const Request& r, std::int64_t, std::int64_t& first, std::int64_t& last) {
        last = std::min(last + 1, r.kv_len());
        if (p.model.window) first = std::max<std::int64_t>(0, last - *p.model.window);
      });
}

/// Aligned to the top left: row t sees keys 0 .. t.
bool causal_top_left(const Problem& p, Attended& m) {
  return see_positions(p, m, [](const Request&, std::int64_t t, std::int64_t&, std::int64_t& last) {
    last = t + 1;
  });
}

bool window_short(const Problem& p, Attended& m) {
  if (!p.model.window) return false;
  return see_positions(p, m, [](const Request&, std::int64_t, std::int64_t& first, std::int64_t&) {
    if (first > 0) ++first;
  });
}

bool window_long(const Problem& p, Attended& m) {
  if (!p.model.window) return false;
  return see_positions(
      p, m, [](const Request&, std::int64_t, std::int64_t& first, std::int64_t&) { --first; });
}

bool window_off(const Problem& p, Attended& m) {
  if (!p.model.window) return false;
  return see_positions(
      p, m, [](const Request&, std::int64_t, std::int64_t& first, std::int64_t&) { first = 0; });
}

bool first_key_ignored(const Problem&, Attended& m) {
  return edit_keys(
      m, [](const AttendedRow&, std::vector<KeyRun>& keys) { drop_positions(keys, 0, 1); });
}

bool prefix_missing(const Problem& p, Attended& m) {
  return edit_keys(m, [&](const AttendedRow& row, std::vector<KeyRun>& keys) {
    drop_positions(keys, 0, request_of(p, row).committed);
  });
}

bool last_page_missing(const Problem& p, Attended& m) {
  return edit_keys(m, [&](const AttendedRow& row, std::vector<KeyRun>& keys) {
    const std::int64_t length = request_of(p, row).kv_len();
    const std::int64_t page = p.pool.page_size;
    if (page > 1 && length > page) drop_positions(keys, (length - 1) / page * page, length);
  });
}

/// A token's number is added to the length after the step instead of the one before it.
bool positions_from_the_total(const Problem& p, Attended& m) {
  return see_positions(
      p, m, [&](const Request& r, std::int64_t, std::int64_t& first, std::int64_t& last) {
        if (p.model.window) {
          first = std::max<std::int64_t>(0, last + r.new_tokens - *p.model.window);
        }
        last = r.kv_len();
      });
}

/// Tree tokens see the drafts before them, as in a chain.
bool tree_ignored(const Problem& p, Attended& m) {
  return edit_keys(m, [&](const AttendedRow& row, std::vector<KeyRun>& keys) {
    const Request& r = request_of(p, row);
    if (r.tree_parent.empty()) return;
    keys.clear();
    add_positions(r, 0, r.committed + row.token + 1, keys);
  });
}

/// Every request's tokens are related as those of request 0.
bool tree_of_request_0(const Problem& p, Attended& m) {
  const std::vector<std::int64_t>& parent = p.requests.front().tree_parent;
  return edit_keys(m, [&](const AttendedRow& row, std::vector<KeyRun>& keys) {
    const Request& r = request_of(p, row);
    const bool related = r.tree_parent.size() == parent.size() && !parent.empty();
    if (row.request == 0 || !related) return;
    keys.clear();
    add_positions(r, 0, r.committed, keys);
    for (std::int64_t t = row.token; t >= 0; t = parent[static_cast<std::size_t>(t)]) {
      add_positions(r, r.committed + t, r.committed + t + 1, keys);
    }
  });
}

bool sink_missing(const Problem&, Attended& m) {
  if (!m.sinks) return false;
  m.sinks = false;
  return true;
}

bool softcap_missing(const Problem&, Attended& m) {
  if (m.softcap <= 0) return false;
  m.softcap = 0;
  return true;
}

bool scale_factor(Attended& m, double factor) {
  m.scale *= factor;
  return true;
}

/// A factor on scores is a factor on the scale.
bool without_descale(Attended& m, const std::optional<double>& descale) {
  return descale && *descale != 1 && scale_factor(m, 1 / *descale);
}

bool scale_missing(const Problem&, Attended& m) {
  if (m.scale == 1) return false;
  m.scale = 1;
  return true;
}

constexpr std::array table = {
    Hypothesis{"prefix_hole",
               "the newest committed keys, as many as the request has new tokens, are missing",
               "`prefix = seq_len - q_len` where seq_len leaves the new tokens out already",
               prefix_hole},
    Hypothesis{
        "total_short_by_new_tokens",
        "the KV length counts the committed keys only, so every row is short by the new tokens",
        "the bound of the loop over keys: seq_len without `+ q_len`, or filled before the drafts",
        total_short_by_new},
    Hypothesis{"without_draft_step", "the KV length is the one from before drafting",
               "the lengths of a draft step: `seq_len + step + 1`, or an array of an earlier step",
               without_draft_step},
    Hypothesis{"no_causal_mask", "every new token sees all new tokens of its request",
               "the mask in the last tiles, `key <= prefix + row`, and whether causal is passed",
               all_see_all_drafts},
    Hypothesis{"causal_one_long", "every row sees one key too many",
               "`key <= position + 1` for `key <= position`, or `<=` against an exclusive bound",
               causal_long},
    Hypothesis{"causal_one_short", "every row sees one key too few",
               "`key < position` for `key <= position`, or an inclusive bound taken as exclusive",
               causal_short},
    Hypothesis{
        "positions_one_early", "positions are one too small, in the mask and the window",
        "the row's position, `seq_len - q_len + row`: one taken off; mask and window follow it",
        positions_one_early},
    Hypothesis{"positions_one_late", "positions are one too large, in the mask and the window",
               "the row's position, `seq_len - q_len + row`: one added; mask and window follow it",
               positions_one_late},
    Hypothesis{"causal_top_left", "the causal mask is aligned to the first key, not to the last",
               "the mask compares `key <= row`: the offset `seq_len - q_len` is missing",
               causal_top_left},
    Hypothesis{"window_one_short", "the window is one key too short",
               "`key > position - window`: is window - 1 passed, or `>=` meant where `>` stands",
               window_short},
    Hypothesis{"window_one_long", "the window is one key too long",
               "`key >= position - window` for `>`, or window passed where window - 1 is meant",
               window_long},
    Hypothesis{
        "window_off", "the window is ignored",
        "whether the window reaches the kernel at all, and its test `key > position - window`",
        window_off},
    Hypothesis{"first_key_ignored", "key 0 is ignored",
               "where the loop over keys begins, 1 for 0, or a test `> 0` on an index",
               first_key_ignored},
    Hypothesis{"prefix_missing", "the committed prefix is ignored",
               "the pass over committed keys: its indptr or length, or its merge with the new ones",
               prefix_missing},
    Hypothesis{"last_page_missing", "the last page is ignored",
               "the number of pages: `len / page_size` rounded down, or one less",
               last_page_missing},
    Hypothesis{
        "positions_from_the_total",
        "positions count from the length after the step, so causality and window end too late",
        "the row's position: `seq_len + row` for `seq_len - q_len + row`",
        positions_from_the_total},
    Hypothesis{
        "tree_ignored", "the draft tree is taken as a chain",
        "whether the custom mask is passed, and the flag that puts it in the causal mask's place",
        tree_ignored},
    Hypothesis{"tree_of_request_0", "every request has the draft tree of request 0",
               "where a request's part of the mask begins (mask_indptr): 0 for all",
               tree_of_request_0},
    Hypothesis{"sink_missing", "the sinks are missing",
               "the end of the softmax, `sum += exp(sink - max)`, and whether sinks are passed",
               sink_missing},
    Hypothesis{"softcap_missing", "the softcap is missing",
               "`cap * tanh(score / cap)` before the mask, and whether the cap is passed",
               softcap_missing},
    Hypothesis{"k_descale_missing", "K's descale is missing",
               "the factor on the scores: k_descale (k_scale) beside softmax_scale",
               [](const Problem& p, Attended& m) { return without_descale(m, p.model.k_descale); }},
    Hypothesis{"q_descale_missing", "q's descale is missing",
               "the factor on the scores: q_descale (q_scale) beside softmax_scale",
               [](const Problem& p, Attended& m) { return without_descale(m, p.model.q_descale); }},
    Hypothesis{"scale_missing", "the softmax scale is missing",
               "whether softmax_scale is passed, and multiplied with before the mask",
               scale_missing},
    Hypothesis{"scale_one_percent_large", "the softmax scale is 1 % too large",
               "constants in the exponent: log2(e) = 1.44269504, a scale rounded to bf16",
               [](const Problem&, Attended& m) { return scale_factor(m, 1.01); }},
    Hypothesis{"scale_squared", "the softmax scale is applied twice",
               "softmax_scale on q and again on the scores",
               [](const Problem&, Attended& m) { return scale_factor(m, m.scale); }},
    Hypothesis{"scale_base_2", "exp2 is used without log2(e) in the scale",
               "`exp2(x)` wants log2(e) in the scale",
               [](const Problem&, Attended& m) { return scale_factor(m, 0.6931471805599453); }},
};

}  // namespace

std::vector<Hypothesis> all_hypotheses() {
  std::vector<Hypothesis> all(table.begin(), table.end());
  for (const Hypothesis& one : request_hypotheses()) all.push_back(one);
  for (const Hypothesis& one : parametric_hypotheses()) all.push_back(one);
  for (const Hypothesis& one : lookup_hypotheses()) all.push_back(one);
  for (const Hypothesis& one : split_hypotheses()) all.push_back(one);
  return all;
}

}  // namespace attest
