#include "contracts/rules/req_to_token.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "contracts/rules/finding_text.hpp"
#include "contracts/rules/table_rows.hpp"

namespace attest {
namespace {

constexpr std::string_view right_slots = "req_to_token.names_the_tokens_slots";
constexpr std::string_view translated = "req_to_token.is_translated_to_the_layers_pool";

std::size_t batch(const Truth& truth) { return truth.problem.requests.size(); }

template <class CallType>
bool table_recorded(const CallType& c, Report& report) {
  const bool rows = recorded(c.req_pool_indices, "req_pool_indices", report);
  return recorded(c.req_to_token, "req_to_token", report) && rows;
}

template <class CallType>
void names_table_rows(const CallType& c, const Truth&, Report& report) {
  if (!recorded(c.req_pool_indices, "req_pool_indices", report)) return;
  for (std::size_t i = 0; i < c.req_pool_indices.values.size(); ++i) {
    const std::int64_t row = c.req_pool_indices[i];
    if (row >= 0 && row < c.req_to_token.size(0)) continue;
    report.add(entry("req_pool_indices", static_cast<std::int64_t>(i)), std::to_string(row),
               "a row of req_to_token, [0, " + std::to_string(c.req_to_token.size(0)) + ")");
  }
}

/// Whether a windowed layer with its own pool was handed the table of the full one. The full pool
/// is the larger, so some cells lie past this layer's, and not one visible cell is right; rows that
/// are merely swapped stay inside.
template <class CallType>
class Untranslated {
 public:
  Untranslated(const CallType& call, const Truth& truth) : call_(call), truth_(truth) {}
  /// Looked at on the first question only: right calls never ask.
  explicit operator bool() {
    if (answer_ == Answer::not_asked) answer_ = look() ? Answer::yes : Answer::no;
    return answer_ == Answer::yes;
  }

 private:
  bool look() const {
    if (!truth_.problem.model.window || truth_.problem.pool.slots.empty()) return false;
    bool past = false;
    for (std::size_t i = 0; i < batch(truth_); ++i) {
      const auto row = visible_cells(call_, truth_, i);
      for (std::int64_t t = row ? row->first : 0; row && t < row->last; ++t) {
        const std::int64_t slot = row->cells[t - row->first];
        if (slot < 0 || slot == truth_.slots.slot(i, t)) return false;
        past |= slot >= call_.k_buffer.size(0);
      }
    }
    return past;
  }

  enum class Answer { not_asked, no, yes };
  const CallType& call_;
  const Truth& truth_;
  Answer answer_ = Answer::not_asked;
};

template <class CallType>
void names_pool_slots(const CallType& c, const Truth& truth, Report& report) {
  if (!table_recorded(c, report)) return;
  const std::int64_t slots = c.k_buffer.size(0);
  // Both ran before: without a finding of theirs every visible cell is a slot of the Problem's
  // pool.
  const bool right = !report.found(right_slots) && !report.found(translated);
  const Pool& pool = truth.problem.pool;
  if (right && pool.num_pages * pool.page_size <= slots) return;
  Untranslated<CallType> untranslated(c, truth);
  for (std::size_t i = 0; i < batch(truth); ++i) {
    const auto row = visible_cells(c, truth, i);
    if (!row) continue;
    const Mismatch outside = outside_pool(*row, slots, truth.slots, i);
    if (outside.count == 0) continue;
    report.add(untranslated ? Severity::policy : Severity::fault, cell_name(*row, outside.token),
               std::to_string(row->cells[outside.token - row->first]),
               "a slot of k_buffer, [0, " + std::to_string(slots) + ")");
    report.add_more(outside.count - 1);
  }
}

template <class CallType>
void names_the_tokens_slots(const CallType& c, const Truth& truth, Report& report) {
  if (!table_recorded(c, report)) return;
  Untranslated<CallType> untranslated(c, truth);
  for (std::size_t i = 0; i < batch(truth); ++i) {
    const auto row = visible_cells(c, truth, i);
    if (!row) continue;
    const Mismatch wrong = compare_cells(*row, truth.slots, i);
    if (wrong.count == 0) continue;
    if (untranslated) return;
    report.add(cell_name(*row, wrong.token), std::to_string(row->cells[wrong.token - row->first]),
               std::to_string(truth.slots.slot(i, wrong.token)) + ", the slot of token " +
                   std::to_string(wrong.token) + " of request " + std::to_string(i));
    report.add_more(wrong.count - 1);
  }
}

template <class CallType>
void is_translated(const CallType& c, const Truth& truth, Report& report) {
  if (!table_recorded(c, report)) return;
  if (!truth.problem.model.window || truth.problem.pool.slots.empty()) return;
  Untranslated<CallType> untranslated(c, truth);
  for (std::size_t i = 0; i < batch(truth); ++i) {
    const auto row = visible_cells(c, truth, i);
    if (!row || compare_cells(*row, truth.slots, i).count == 0) continue;
    if (!untranslated) return;
    const auto live = [&](std::int64_t t) { return truth.slots.slot(i, t) >= 0; };
    std::int64_t token = row->first;
    while (!live(token)) ++token;
    report.add(cell_name(*row, token), std::to_string(row->cells[token - row->first]),
               std::to_string(truth.slots.slot(i, token)) + " in this layer's own pool");
  }
}

template <class CallType>
void encoder_slots_are_right(const CallType& c, const Truth& truth, Report& report) {
  if (!truth.problem.model.cross_attention || !table_recorded(c, report)) return;
  for (std::size_t i = 0; i < batch(truth); ++i) {
    const std::vector<std::int64_t>& slots = truth.slots.encoder_slots[i];
    const std::int64_t row = c.req_pool_indices[i];
    if (!truth.problem.requests[i].live || row < 0 || row >= c.req_to_token.size(0)) continue;
    const std::size_t cells =
        std::min(slots.size(), static_cast<std::size_t>(c.req_to_token.size(1)));
    for (std::size_t j = 0; j < cells; ++j) {
      const std::int64_t got = c.req_to_token.at(static_cast<std::size_t>(row), j);
      if (got == slots[j]) continue;
      report.add(entry("req_to_token", row, static_cast<std::int64_t>(j)), std::to_string(got),
                 std::to_string(slots[j]) + ", the slot of encoder token " + std::to_string(j) +
                     " of request " + std::to_string(i));
    }
  }
}

void names_the_new_tokens_slots(const ExtendCall& c, const Truth& truth, Report& report) {
  if (!table_recorded(c, report)) return;
  for (std::size_t i = 0; i < batch(truth); ++i) {
    const auto row = new_cells(c, truth, i);
    if (!row) continue;
    const Mismatch wrong = compare_cells(*row, truth.slots, i);
    if (wrong.count == 0) continue;
    report.add(cell_name(*row, wrong.token), std::to_string(row->cells[wrong.token - row->first]),
               std::to_string(truth.slots.slot(i, wrong.token)) + ", where token " +
                   std::to_string(wrong.token) + " of request " + std::to_string(i) +
                   " was stored");
    report.add_more(wrong.count - 1);
  }
}

/// The cell of one new token.
struct NewCell {
  std::int64_t slot;
  std::size_t request;
  std::int64_t token;
  TableCells row;
};

void new_slots_are_distinct(const ExtendCall& c, const Truth& truth, Report& report) {
  if (!table_recorded(c, report)) return;
  std::vector<NewCell> cells;
  for (std::size_t i = 0; i < batch(truth); ++i) {
    const auto row = new_cells(c, truth, i);
    for (std::int64_t t = row ? row->first : 0; row && t < row->last; ++t) {
      cells.push_back({row->cells[t - row->first], i, t, *row});
    }
  }
  std::sort(cells.begin(), cells.end(), [](const NewCell& a, const NewCell& b) {
    return std::tie(a.slot, a.request, a.token) < std::tie(b.slot, b.request, b.token);
  });
  for (std::size_t n = 1; n < cells.size(); ++n) {
    const NewCell& before = cells[n - 1];
    if (cells[n].slot != before.slot) continue;
    report.add(cell_name(cells[n].row, cells[n].token), std::to_string(cells[n].slot),
               "a slot of its own, not that of " + cell_name(before.row, before.token));
  }
}

constexpr Rule rules[] = {
    {.id = "req_pool_indices.names_rows_of_the_table",
     .says = "req_pool_indices[i] is a row of req_to_token",
     .why = "the kernels raise above the last row and read in front of the table below 0",
     .source = "sgl-project/sglang sgl-kernel/csrc/cpu/extend.cpp, req_pool_id < max_num_reqs",
     .severity = Severity::fault,
     .extend = names_table_rows<ExtendCall>,
     .decode = names_table_rows<DecodeCall>},
    {.id = right_slots,
     .says = "the cell of token j of a request's table row is the slot that holds token j, for "
             "every j some new token sees",
     .why = "the row then attends another request's keys, or stale ones, in silence",
     .source = "sgl-project/sglang#22958",
     .severity = Severity::wrong,
     .extend = names_the_tokens_slots<ExtendCall>,
     .decode = names_the_tokens_slots<DecodeCall>},
    {.id = translated,
     .says = "a windowed layer with its own pool gets a table of that pool's slots",
     .why = "the backend translates the store location only, so the kernel would read the full "
            "pool's slots in the smaller one; not yet seen on a running server",
     .source = "sgl-project/sglang intel_amx_backend.py, forward_extend with a hybrid pool",
     .severity = Severity::policy,
     .extend = is_translated<ExtendCall>,
     .decode = is_translated<DecodeCall>},
    {.id = "req_to_token.names_slots_of_the_pool",
     .says = "every visible cell of req_to_token is a slot of k_buffer",
     .why = "extend reads K and V through it unchecked; decode raises above the pool and reads in "
            "front of it below 0",
     .source = "sgl-project/sglang sgl-kernel/csrc/cpu/extend.cpp, pack_vnni",
     .severity = Severity::fault,
     .extend = names_pool_slots<ExtendCall>,
     .decode = names_pool_slots<DecodeCall>},
    {.id = "req_to_token.names_the_encoders_slots",
     .says = "in cross attention the first encoder_lens[i] cells are the encoder tokens' slots",
     .why = "they are all the keys there are",
     .source = "sgl-project/sglang sgl-kernel/csrc/cpu/decode.cpp, is_cross_attn",
     .severity = Severity::wrong,
     .extend = encoder_slots_are_right<ExtendCall>,
     .decode = encoder_slots_are_right<DecodeCall>},
    {.id = "req_to_token.names_the_new_tokens_slots",
     .says = "the cells of this step's tokens are the slots their keys are stored in",
     .why = "extend takes new keys from k_extend, so the fault shows at the next step's read",
     .source = "sgl-project/sglang intel_amx_backend.py, set_kv_buffer before the kernel",
     .severity = Severity::policy,
     .extend = names_the_new_tokens_slots},
    {.id = "req_to_token.gives_new_tokens_their_own_slots",
     .says = "no two new tokens of the batch share a slot",
     .why = "one of the two stores is lost, and the next step reads the other's key",
     .source = "sgl-project/sglang spec.cpp, assign_extend_cache_locs_cpu",
     .severity = Severity::policy,
     .extend = new_slots_are_distinct},
};

}  // namespace

std::span<const Rule> req_to_token_rules() { return rules; }

}  // namespace attest
