#include <algorithm>
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

/// One request of the call, in the kernel's words.
struct ExtendRequest {
  std::size_t i;
  std::int64_t total, fresh, prefix, start, encoder;
};

class ExtendReader {
 public:
  ExtendReader(const ExtendCall& call, const Problem& problem, const SlotMap& slots)
      : call_(call),
        window_(saturated(call.sliding_window_size)),
        new_tokens_(problem),
        contents_(problem, slots),
        table_(call.req_to_token),
        rows_(call.q_extend, problem) {}

  std::vector<AttendedRow> rows(const Problem& problem) {
    for (std::size_t i = 0; i < batch() && !rows_.exhausted(); ++i) read_request(request(i));
    return std::move(rows_).take(problem);
  }

 private:
  std::size_t batch() const {
    std::size_t n =
        std::min({call_.seq_lens.values.size(), call_.req_pool_indices.values.size(),
                  call_.extend_seq_lens.values.size(), call_.extend_start_loc.values.size()});
    return call_.encoder_lens ? std::min(n, call_.encoder_lens->values.size()) : n;
  }

  ExtendRequest request(std::size_t i) const {
    ExtendRequest r{.i = i,
                    .total = saturated(call_.seq_lens[i]),
                    .fresh = saturated(call_.extend_seq_lens[i]),
                    .prefix = 0,
                    .start = saturated(call_.extend_start_loc[i]),
                    .encoder = call_.encoder_lens ? saturated((*call_.encoder_lens)[i]) : 0};
    r.prefix = r.total - r.fresh;
    return r;
  }

  void read_request(const ExtendRequest& r) {
    if (raises(r)) {
      cover(r,
            [](std::int64_t) { return std::vector<KeyRun>{{unknown_sequence, outside_slot, 1}}; });
    } else if (call_.is_cross_attn) {
      read_cross(r);
    } else {
      read_self(r);
    }
  }

  bool raises(const ExtendRequest& r) const {
    const bool fresh_keys = call_.is_cross_attn || (call_.k_extend && call_.v_extend);
    return r.prefix < 0 || r.total > call_.req_to_token.size(1) || !fresh_keys || mask_refused(r);
  }

  /// The kernel requires one length for all with a mask, and a square for each request.
  bool mask_refused(const ExtendRequest& r) const {
    if (!call_.tree_mask) return false;
    const std::int64_t q = call_.max_len_extend;
    std::int64_t entries = 0;
    return call_.is_cross_attn || window_ > 0 || r.fresh != q || q < 0 ||
           __builtin_mul_overflow(q, q, &entries) ||
           __builtin_mul_overflow(entries, static_cast<std::int64_t>(batch()), &entries) ||
           entries != static_cast<std::int64_t>(call_.tree_mask->values.size());
  }

  /// Tokens of the request whose rows are computed and lie inside q: [first, last).
  std::int64_t first_row(const ExtendRequest& r) const {
    return std::max<std::int64_t>(0, -r.start);
  }
  std::int64_t last_row(const ExtendRequest& r) const {
    const std::int64_t computed = extend_rows_computed(saturated(call_.max_len_extend));
    return std::min({r.fresh, computed, rows_.count() - r.start});
  }

  template <class KeysOfToken>
  void cover(const ExtendRequest& r, KeysOfToken keys_of) {
    for (std::int64_t t = first_row(r); t < last_row(r); ++t) rows_.cover(r.start + t, keys_of(t));
  }

  void read_cross(const ExtendRequest& r) {
    // Without lengths of its own the encoder is taken to be as long as the text.
    const std::int64_t columns = call_.encoder_lens ? r.encoder : r.total;
    RowKeys keys(contents_, r.i, 0);
    table_.read(keys, call_.req_pool_indices[r.i], 0, columns);
    const std::vector<KeyRun> all = keys.clipped(0, columns);
    cover(r, [&](std::int64_t) -> const std::vector<KeyRun>& { return all; });
  }

  void read_self(const ExtendRequest& r) {
    const std::int64_t oldest = window_ > 0 ? std::max<std::int64_t>(0, r.prefix - window_ + 1) : 0;
    RowKeys keys(contents_, r.i, oldest);
    table_.read(keys, call_.req_pool_indices[r.i], r.encoder + oldest, r.prefix - oldest);
    // New keys come from k_extend, by row, whatever the table says.
    const std::int64_t fresh = call_.tree_mask ? r.fresh : last_row(r);
    keys.read_outside(std::min(fresh, first_row(r)));  // in front of row 0, however far
    for (std::int64_t u = first_row(r); u < fresh; ++u) {
      const std::int64_t row = r.start + u;
      keys.append(new_tokens_.content(row < call_.q_extend.size(0) ? row : -1));
    }
    cover(r, [&](std::int64_t t) {
      if (call_.tree_mask) return masked(keys, *call_.tree_mask, r, t);
      const std::int64_t end = r.prefix + t + 1;
      return keys.clipped(window_ > 0 ? std::max<std::int64_t>(0, end - window_) : 0, end);
    });
  }

  /// The whole prefix and the new keys the mask shows. Keys past the query row's own block are
  /// never visited, whatever the mask says (sglang extend.cpp, stage 2).
  std::vector<KeyRun> masked(const RowKeys& keys, const IntArray& mask, const ExtendRequest& r,
                             std::int64_t t) const {
    const std::int64_t block = extend_block_rows(r.fresh);
    const std::int64_t visited = std::min(r.fresh, (t / block + 1) * block);
    const auto row = (r.i * static_cast<std::size_t>(r.fresh) + static_cast<std::size_t>(t)) *
                     static_cast<std::size_t>(r.fresh);
    std::vector<KeyRun> visible = keys.clipped(0, r.prefix);
    for (std::int64_t u = 0; u < visited; ++u) {
      if (mask.values[row + static_cast<std::size_t>(u)] == 0) continue;
      for (const KeyRun& run : keys.clipped(r.prefix + u, r.prefix + u + 1)) visible.push_back(run);
    }
    return canonical(std::move(visible));
  }

  const ExtendCall& call_;
  std::int64_t window_;
  NewTokens new_tokens_;
  SlotContents contents_;
  TableReader table_;
  QueryRows rows_;
};

}  // namespace

Attended read(const ExtendCall& call, const Problem& problem, const SlotMap& slots) {
  return {.scale = call.sm_scale,
          .softcap = call.logit_cap,
          .sinks = call.sinks.has_value(),
          .num_q_heads = call.q_extend.size(1),
          .num_kv_heads = distinct_heads(call.k_buffer, 1),
          .rows = ExtendReader(call, problem, slots).rows(problem)};
}

}  // namespace attest
