#include <algorithm>
#include <array>

#include "property_tests/diagnose.hpp"
#include "property_tests/meaning_edits.hpp"

namespace attest {
namespace {

bool previous_requests_keys(const Problem& p, Attended& m) {
  return keys_of_other(p, m, [](std::int64_t request) { return request - 1; });
}

bool next_requests_keys(const Problem& p, Attended& m) {
  const auto count = static_cast<std::int64_t>(p.requests.size());
  return keys_of_other(
      p, m, [=](std::int64_t request) { return request + 1 < count ? request + 1 : -1; });
}

bool first_requests_keys(const Problem& p, Attended& m) {
  return keys_of_other(p, m, [](std::int64_t request) { return request > 0 ? 0 : -1; });
}

bool kv_head_0(const Problem&, Attended& m) {
  if (m.num_kv_heads == 1) return false;
  m.num_kv_heads = 1;
  return true;
}

/// The first `count` positions come from the request before, the rest is right; of `stored` ones
/// only those that were there before the step.
bool beginning_of_previous(const Problem& p, Attended& m, std::int64_t count, bool stored) {
  const auto& requests = p.requests;
  return edit_keys(m, [&](const AttendedRow& row, std::vector<KeyRun>& keys) {
    if (row.request == 0 || p.model.cross_attention) return;
    const Request& other = requests[static_cast<std::size_t>(row.request - 1)];
    std::vector<KeyRun> edited;
    for (const KeyRun& run : keys) {
      const std::int64_t end = run.first + run.count;
      const std::int64_t last = stored ? request_of(p, row).committed : end;
      const std::int64_t stale = std::min({end, count, last});  // past the other's last: nobody's
      add_positions(other, run.first, stale, edited);
      const std::int64_t rest = std::max(run.first, stale);
      edited.push_back({run.sequence, rest, end - rest});
    }
    keys = std::move(edited);
  });
}

bool first_page_of_previous(const Problem& p, Attended& m) {
  return beginning_of_previous(p, m, p.pool.page_size, false);
}
bool first_slots_of_previous(const Problem& p, Attended& m) {
  return beginning_of_previous(p, m, 16, false);
}
bool first_stored_slots_of_previous(const Problem& p, Attended& m) {
  return beginning_of_previous(p, m, 16, true);
}

bool several_kv_heads(const Problem& p, Attended&) { return p.model.num_kv_heads > 1; }

constexpr std::array table = {
    Hypothesis{"previous_requests_keys", "each request reads the keys of the one before it",
               "the index of the table row or indptr: `request - 1`", previous_requests_keys},
    Hypothesis{"next_requests_keys", "each request reads the keys of the one after it",
               "the index of the table row or indptr: `request + 1`, or its end taken as its begin",
               next_requests_keys},
    Hypothesis{"first_requests_keys", "every request reads the keys of request 0",
               "the table row's stride (0), or a request number that is not added",
               first_requests_keys},
    Hypothesis{"first_page_of_previous_request", "the first page is the previous request's",
               "who writes the table's first entry, and page ids kept from the request before",
               first_page_of_previous},
    Hypothesis{"first_slots_of_previous_request", "the first 16 slots are the previous request's",
               "the first 16 entries of the slot list: a block kept from the request before",
               first_slots_of_previous},
    Hypothesis{"first_stored_slots_of_previous_request",
               "the first 16 slots are the previous request's, apart from the new tokens'",
               "the first 16 committed entries of the slot list: kept from the request before",
               first_stored_slots_of_previous},
    Hypothesis{"kv_heads_shifted", "every query head reads the next kv head",
               "`kv_head = q_head / group` in the address of K and V: one added", several_kv_heads,
               1, 1},
    Hypothesis{"v_heads_shifted", "V is read from the next kv head, K from the right one",
               "the head in V's address, where it is computed apart from K's", several_kv_heads, 0,
               1},
    Hypothesis{"k_heads_shifted", "K is read from the next kv head, V from the right one",
               "the head in K's address, where it is computed apart from V's", several_kv_heads, 1,
               0},
    Hypothesis{"kv_head_0", "every query head reads kv head 0",
               "the head stride of K and V: 0, or never added", kv_head_0},
};

}  // namespace

std::vector<Hypothesis> request_hypotheses() { return {table.begin(), table.end()}; }

}  // namespace attest
