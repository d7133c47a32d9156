#include "contracts/rules/loc.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "contracts/rules/finding_text.hpp"

namespace attest {
namespace {

/// Without new keys the call stores nothing and `loc` is not read.
bool stores(const DecodeCall& c, Report& report) {
  return c.key && c.value && recorded(c.loc, "loc", report);
}

void names_a_slot(const DecodeCall& c, const Truth&, Report& report) {
  if (!stores(c, report)) return;
  for (std::size_t i = 0; i < c.loc.values.size(); ++i) {
    if (c.loc[i] >= 0 && c.loc[i] < c.k_buffer.size(0)) continue;
    report.add(entry("loc", static_cast<std::int64_t>(i)), std::to_string(c.loc[i]),
               "a slot of k_buffer, [0, " + std::to_string(c.k_buffer.size(0)) + ")");
  }
}

void is_the_new_tokens_slot(const DecodeCall& c, const Truth& truth, Report& report) {
  if (!stores(c, report)) return;
  for (std::size_t i = 0; i < truth.problem.requests.size(); ++i) {
    const Request& r = truth.problem.requests[i];
    if (!r.live || r.new_tokens == 0) continue;
    const std::int64_t slot = truth.slots.slot(i, r.committed);
    if (slot < 0 || c.loc[i] == slot) continue;
    report.add(entry("loc", static_cast<std::int64_t>(i)), std::to_string(c.loc[i]),
               std::to_string(slot) + ", the slot of token " + std::to_string(r.committed) +
                   " of request " + std::to_string(i));
  }
}

void is_distinct(const DecodeCall& c, const Truth& truth, Report& report) {
  if (!stores(c, report)) return;
  std::vector<std::pair<std::int64_t, std::size_t>> slots;
  for (std::size_t i = 0; i < truth.problem.requests.size(); ++i) {
    if (truth.problem.requests[i].live) slots.emplace_back(c.loc[i], i);
  }
  std::sort(slots.begin(), slots.end());
  for (std::size_t n = 1; n < slots.size(); ++n) {
    if (slots[n].first != slots[n - 1].first) continue;
    report.add(entry("loc", static_cast<std::int64_t>(slots[n].second)),
               std::to_string(slots[n].first),
               "a slot of its own, not that of " +
                   entry("loc", static_cast<std::int64_t>(slots[n - 1].second)));
  }
}

void is_the_last_key(const DecodeCall& c, const Truth& truth, Report& report) {
  if (!stores(c, report) || c.is_cross_attn) return;
  if (!recorded(c.seq_lens, "seq_lens", report)) return;
  if (!recorded(c.req_pool_indices, "req_pool_indices", report)) return;
  if (!recorded(c.req_to_token, "req_to_token", report)) return;
  if (c.encoder_lens && !recorded(*c.encoder_lens, "encoder_lens", report)) return;
  for (std::size_t i = 0; i < truth.problem.requests.size(); ++i) {
    const std::int64_t row = c.req_pool_indices[i];
    std::int64_t column = c.encoder_lens ? (*c.encoder_lens)[i] : 0;
    const bool overflow = __builtin_add_overflow(column, c.seq_lens[i] - 1, &column);
    const bool inside = !overflow && row >= 0 && row < c.req_to_token.size(0) && column >= 0 &&
                        column < c.req_to_token.size(1);
    if (!truth.problem.requests[i].live || !inside) continue;
    const std::int64_t slot =
        c.req_to_token.at(static_cast<std::size_t>(row), static_cast<std::size_t>(column));
    if (slot == c.loc[i]) continue;
    report.add(entry("req_to_token", row, column), std::to_string(slot),
               std::to_string(c.loc[i]) + " = " + entry("loc", static_cast<std::int64_t>(i)) +
                   ", the last of seq_lens' keys being the one stored");
  }
}

/// Slots that padded rows store into, ascending, each with its row.
std::vector<std::pair<std::int64_t, std::size_t>> padded_stores(const DecodeCall& c,
                                                                const Truth& truth) {
  std::vector<std::pair<std::int64_t, std::size_t>> stores;
  for (std::size_t i = 0; i < truth.problem.requests.size(); ++i) {
    if (!truth.problem.requests[i].live) stores.emplace_back(c.loc[i], i);
  }
  std::sort(stores.begin(), stores.end());
  return stores;
}

void leaves_live_keys_alone(const DecodeCall& c, const Truth& truth, Report& report) {
  if (!stores(c, report)) return;
  const auto padded = padded_stores(c, truth);
  const std::int64_t size = truth.slots.page_size;
  for (std::size_t i = 0; i < truth.problem.requests.size() && !padded.empty(); ++i) {
    const Request& r = truth.problem.requests[i];
    for (std::int64_t t = 0; r.live && t < r.kv_len(); t += size) {
      const std::int64_t first = truth.slots.pages[i][static_cast<std::size_t>(t / size)] * size;
      const std::int64_t last = first + std::min(size, r.kv_len() - t);
      auto hit = std::lower_bound(padded.begin(), padded.end(), std::pair{first, std::size_t{0}});
      for (; first >= 0 && hit != padded.end() && hit->first < last; ++hit) {
        report.add(entry("loc", static_cast<std::int64_t>(hit->second)), std::to_string(hit->first),
                   "a slot no live request reads; it holds token " +
                       std::to_string(t + hit->first - first) + " of request " + std::to_string(i));
      }
    }
  }
}

constexpr Rule rules[] = {
    {.id = "loc.names_a_slot_of_the_pool",
     .says = "loc[i] is a slot of k_buffer, in padded rows too",
     .why = "the kernel stores there unchecked: outside the pool it writes out of bounds",
     .source = "sgl-project/sglang sgl-kernel/csrc/cpu/decode.cpp, decode_set_kv_buffer",
     .severity = Severity::fault,
     .decode = names_a_slot},
    {.id = "loc.is_the_new_tokens_slot",
     .says = "loc[i] is the slot the allocator gave this step's token",
     .why = "elsewhere it overwrites a key that another request, or a later step, reads",
     .source = "sgl-project/sglang intel_amx_backend.py, forward_decode: out_cache_loc",
     .severity = Severity::wrong,
     .decode = is_the_new_tokens_slot},
    {.id = "loc.is_distinct",
     .says = "no two live rows store into one slot",
     .why = "two threads then write it at once, and at least one row reads the other's key",
     .source = "sgl-project/sglang sgl-kernel/csrc/cpu/decode.cpp, decode_set_kv_buffer",
     .severity = Severity::wrong,
     .decode = is_distinct},
    {.id = "loc.leaves_live_keys_alone",
     .says = "padded rows store into slots that no live request holds",
     .why = "a padded row stores its key like any other: into a live slot, it destroys that token",
     .source = "sgl-project/sglang memory_pool.py: slot 0 is kept for padded tokens",
     .severity = Severity::wrong,
     .decode = leaves_live_keys_alone},
    {.id = "loc.is_the_last_visible_cell",
     .says = "the cell at encoder_lens[i] + seq_lens[i] - 1 of the row is loc[i]",
     .why = "seq_lens includes the token the call stores; otherwise the row attends a stale slot "
            "or misses its own key",
     .source = "sgl-project/sglang intel_amx_backend.py, forward_decode",
     .severity = Severity::wrong,
     .decode = is_the_last_key},
};

}  // namespace

std::span<const Rule> loc_rules() { return rules; }

}  // namespace attest
