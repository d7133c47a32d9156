#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "contracts/signatures.hpp"
#include "contracts/signatures/cpu_kernels.hpp"
#include "contracts/signatures/new_tokens.hpp"
#include "contracts/signatures/pool_view.hpp"
#include "contracts/signatures/query_rows.hpp"
#include "contracts/signatures/slot_contents.hpp"
#include "contracts/signatures/table_reader.hpp"

namespace attest {
namespace {

/// What the store before attention leaves in the pool, where it differs from what the Problem says
/// the slots hold. Empty for a call whose `loc` is right.
class Stored {
 public:
  Stored(const DecodeCall& call, const Problem& problem, const SlotMap& slots) {
    if (!call.key || !call.value || as_meant(call, problem, slots)) return;
    for (std::size_t i = 0; i < problem.requests.size(); ++i) {
      const Request& r = problem.requests[i];
      if (r.live && r.new_tokens > 0) missing_.insert(slots.slot(i, r.committed));
    }
    const NewTokens tokens(problem);
    for (std::size_t row = 0; row < call.loc.values.size(); ++row) {
      written_[call.loc[row]] = tokens.content(static_cast<std::int64_t>(row));
    }
  }

  bool changes_nothing() const { return written_.empty() && missing_.empty(); }

  /// The content of a slot that the store decided, or nothing where the Problem still says it.
  std::optional<KeyRun> content(std::int64_t slot) const {
    if (const auto at = written_.find(slot); at != written_.end()) return at->second;
    if (missing_.contains(slot)) return KeyRun{unknown_sequence, slot, 1};
    return std::nullopt;
  }

 private:
  static bool as_meant(const DecodeCall& call, const Problem& problem, const SlotMap& slots) {
    if (call.loc.values.size() != problem.requests.size()) return false;
    for (std::size_t i = 0; i < problem.requests.size(); ++i) {
      const Request& r = problem.requests[i];
      const bool one_token = r.new_tokens == 1;
      if (!one_token || call.loc[i] != (r.live ? slots.slot(i, r.committed) : 0)) return false;
    }
    return true;
  }

  std::unordered_map<std::int64_t, KeyRun> written_;
  std::unordered_set<std::int64_t> missing_;
};

class DecodeReader {
 public:
  DecodeReader(const DecodeCall& call, const Problem& problem, const SlotMap& slots)
      : call_(call),
        mla_(takes_mla_path(call)),
        contents_(problem, slots),
        stored_(call, problem, slots),
        table_(call.req_to_token),
        rows_(call.query, problem) {}

  std::vector<AttendedRow> rows(const Problem& problem) {
    std::size_t batch =
        std::min({call_.seq_lens.values.size(), call_.req_pool_indices.values.size(),
                  static_cast<std::size_t>(rows_.count())});
    if (call_.encoder_lens) batch = std::min(batch, call_.encoder_lens->values.size());
    for (std::size_t i = 0; i < batch; ++i) rows_.cover(static_cast<std::int64_t>(i), keys_of(i));
    return std::move(rows_).take(problem);
  }

 private:
  std::vector<KeyRun> keys_of(std::size_t i) {
    const std::int64_t seq = saturated(call_.seq_lens[i]);
    if (seq > call_.req_to_token.size(1)) return {{unknown_sequence, outside_slot, 1}};
    const std::int64_t encoder =
        call_.encoder_lens && !mla_ ? saturated((*call_.encoder_lens)[i]) : 0;
    if (call_.is_cross_attn && !mla_) {
      return columns(i, 0, 0, call_.encoder_lens ? encoder : seq);
    }
    const std::int64_t w = mla_ ? 0 : call_.sliding_window_size;
    // The window's shift replaces the encoder's (sglang decode.cpp).
    if (w > 0 && w < seq) return columns(i, seq - w, seq - w, w);
    return columns(i, encoder, 0, seq);
  }

  /// Contents of `count` cells from `column` on, which the row counts from `token` on.
  std::vector<KeyRun> columns(std::size_t i, std::int64_t column, std::int64_t token,
                              std::int64_t count) {
    if (count <= 0) return {};
    RowKeys keys(contents_, i, token);
    const std::int64_t row = call_.req_pool_indices[i];
    if (stored_.changes_nothing()) {
      table_.read(keys, row, column, count);
    } else {
      read_after_store(keys, row, column, count);
    }
    return keys.clipped(token, token + count);
  }

  void read_after_store(RowKeys& keys, std::int64_t row, std::int64_t column,
                        std::int64_t count) const {
    const std::int64_t walked = table_.walkable(column, count);
    for (std::int64_t j = 0; j < walked; ++j) {
      const std::int64_t slot = table_.slot(row, column + j);
      if (slot < 0) {
        keys.read_outside(1);
      } else if (const auto run = stored_.content(slot)) {
        keys.append(*run);
      } else {
        keys.read(slot, 1);
      }
    }
    keys.read_outside(count - walked);
  }

  const DecodeCall& call_;
  bool mla_;
  SlotContents contents_;
  Stored stored_;
  TableReader table_;
  QueryRows rows_;
};

}  // namespace

Attended read(const DecodeCall& call, const Problem& problem, const SlotMap& slots) {
  return {.scale = call.sm_scale,
          .softcap = call.logit_cap,
          .sinks = call.sinks.has_value(),
          .num_q_heads = call.query.size(1),
          .num_kv_heads = distinct_heads(call.k_buffer, 1),
          .rows = DecodeReader(call, problem, slots).rows(problem)};
}

}  // namespace attest
