#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "contracts/attended.hpp"

namespace attest {

/// Ways to change what rows see, for hypotheses (hypotheses.cpp). All return whether anything
/// changed and leave rows without a value alone.

inline const Request& request_of(const Problem& p, const AttendedRow& row) {
  return p.requests[static_cast<std::size_t>(row.request)];
}

/// Adds positions [first, last) of a request's text, split where its shared prefix ends.
void add_positions(const Request& r, std::int64_t first, std::int64_t last,
                   std::vector<KeyRun>& keys);

/// Drops positions [first, last) of whatever sequence.
void drop_positions(std::vector<KeyRun>& keys, std::int64_t first, std::int64_t last);

/// Edits each row's keys by themselves: edit(row, keys).
template <class Edit>
bool edit_keys(Attended& meaning, Edit&& edit) {
  bool changed = false;
  for (AttendedRow& row : meaning.rows) {
    if (row.expect != RowExpectation::value) continue;
    std::vector<KeyRun> keys = row.keys;
    edit(row, keys);
    keys = canonical(std::move(keys));
    changed = changed || keys != row.keys;
    row.keys = std::move(keys);
  }
  return changed;
}

/// Gives every row of a causal step the positions [first, last) that `range(request, token, first,
/// last)` leaves of its own; nothing past the request's last key.
template <class Range>
bool see_positions(const Problem& p, Attended& meaning, Range&& range) {
  if (p.model.cross_attention) return false;
  return edit_keys(meaning, [&](const AttendedRow& row, std::vector<KeyRun>& keys) {
    const Request& r = request_of(p, row);
    if (!r.tree_parent.empty()) return;
    const std::int64_t position = r.committed + row.token;
    const std::int64_t oldest = p.model.window ? position - *p.model.window + 1 : 0;
    std::int64_t first = std::max<std::int64_t>(0, oldest);
    std::int64_t last = position + 1;
    range(r, row.token, first, last);
    keys.clear();
    add_positions(r, first, std::min(last, r.kv_len()), keys);
  });
}

/// Row t of a request sees what row t (or the last) of request other(request) sees; -1 = its own.
template <class Other>
bool keys_of_other(const Problem& p, Attended& meaning, Other&& other) {
  std::vector<std::int64_t> first_row(p.requests.size(), -1);
  for (std::size_t r = meaning.rows.size(); r-- > 0;) {
    first_row[static_cast<std::size_t>(meaning.rows[r].request)] = static_cast<std::int64_t>(r);
  }
  const Attended truth = meaning;
  return edit_keys(meaning, [&](const AttendedRow& row, std::vector<KeyRun>& keys) {
    const std::int64_t from = other(row.request);
    if (from < 0 || first_row[static_cast<std::size_t>(from)] < 0) return;
    const std::int64_t tokens = p.requests[static_cast<std::size_t>(from)].new_tokens;
    const std::int64_t at =
        first_row[static_cast<std::size_t>(from)] + std::min(row.token, tokens - 1);
    keys = truth.rows[static_cast<std::size_t>(at)].keys;
  });
}

}  // namespace attest
