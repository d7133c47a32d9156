#include <algorithm>
#include <cmath>
#include <utility>

#include "contracts/signatures.hpp"
#include "contracts/signatures/new_tokens.hpp"
#include "contracts/signatures/page_list.hpp"
#include "contracts/signatures/pool_view.hpp"
#include "contracts/signatures/query_rows.hpp"

namespace attest {
namespace {

// Rows per program of the kernel's smallest configuration; a larger one computes more of the rows
// that max_len_extend leaves out, and nobody may rely on them.
constexpr std::int64_t block_rows = 16;

class LegacyReader {
 public:
  LegacyReader(const LegacyExtendCall& call, const Problem& problem, const SlotMap& slots)
      : call_(call),
        window_(saturated(call.sliding_window_size)),
        new_tokens_(problem),
        contents_(problem, slots),
        rows_(call.q_extend, problem) {
    if (call.custom_mask) mask_ = &*call.custom_mask;
    if (call.mask_indptr) starts_ = &*call.mask_indptr;
    const Model& m = problem.model;
    same_pool_ = addresses_pool(with_pages(call.k_buffer), problem, problem.pool.k, m.head_dim) &&
                 addresses_pool(with_pages(call.v_buffer), problem, problem.pool.v, m.v_head_dim);
  }

  std::vector<AttendedRow> rows(const Problem& problem) {
    const bool launched = call_.qo_indptr.recorded && call_.kv_indptr.recorded &&
                          call_.max_len_extend > 0 && mask_is_whole();
    std::size_t offsets = std::min(call_.qo_indptr.values.size(), call_.kv_indptr.values.size());
    if (mask_ != nullptr && starts_ != nullptr)
      offsets = std::min(offsets, starts_->values.size() + 1);
    for (std::size_t i = 0; launched && i + 1 < offsets && !rows_.exhausted(); ++i) {
      read_request(i);
    }
    return std::move(rows_).take(problem);
  }

 private:
  bool mask_is_whole() const {
    if (mask_ == nullptr) return true;
    return starts_ != nullptr && mask_->recorded && starts_->recorded;
  }

  void read_request(std::size_t i) {
    const PageList pages{call_.kv_indptr, call_.kv_indices, nullptr, 1,
                         std::min(call_.k_buffer.size(0), call_.v_buffer.size(0))};
    const std::int64_t start = saturated(call_.qo_indptr.values[i]);
    const std::int64_t fresh = saturated(call_.qo_indptr.values[i + 1]) - start;
    const std::int64_t prefix = std::max<std::int64_t>(0, pages.length(i));
    const std::int64_t blocks = (saturated(call_.max_len_extend) + block_rows - 1) / block_rows;
    const std::int64_t first = std::max<std::int64_t>(0, -start);
    const std::int64_t last = std::min({fresh, blocks * block_rows, rows_.count() - start});
    if (first >= last) return;
    const std::int64_t oldest = window_ >= 0 ? std::max<std::int64_t>(0, prefix - window_) : 0;
    RowKeys keys(contents_, i, std::min(oldest, prefix));
    pages.read(i, prefix, same_pool_, keys);
    const bool all = mask_ != nullptr || !call_.is_causal;
    const std::int64_t seen = all ? std::min(fresh, rows_.count()) : last;
    keys.read_outside(std::min(seen, first));  // in front of row 0, however far
    for (std::int64_t u = first; u < seen; ++u) {
      const std::int64_t row = start + u;
      const bool inside = row < call_.k_extend.size(0) && row < call_.v_extend.size(0);
      keys.append(new_tokens_.content(inside ? row : -1));
    }
    for (std::int64_t t = first; t < last; ++t) {
      rows_.cover(start + t, visible(keys, i, prefix, fresh, t));
    }
  }

  std::vector<KeyRun> visible(const RowKeys& keys, std::size_t i, std::int64_t prefix,
                              std::int64_t fresh, std::int64_t t) const {
    const std::int64_t begin = window_ >= 0 ? std::max<std::int64_t>(0, prefix + t - window_) : 0;
    if (mask_ == nullptr) {
      return keys.clipped(begin, call_.is_causal ? prefix + t + 1 : prefix + fresh);
    }
    // The prefix part of the mask is not read unless the caller asks for it.
    std::vector<KeyRun> runs;
    const std::int64_t first = call_.skip_prefix_custom_mask ? prefix : 0;
    if (begin < first) runs = keys.clipped(begin, first);
    const auto entries = static_cast<std::int64_t>(mask_->values.size());
    std::int64_t row = 0;
    const bool far = __builtin_mul_overflow(t, prefix + fresh, &row) ||
                     __builtin_add_overflow(row, saturated(starts_->values[i]), &row);
    if (far || row >= entries) return canonical(std::move(runs));
    const std::int64_t last = std::min(prefix + fresh, entries - row);
    for (std::int64_t k = std::max({begin, first, -row}); k < last; ++k) {
      if (mask_->values[static_cast<std::size_t>(row + k)] == 0) continue;
      for (const KeyRun& run : keys.clipped(k, k + 1)) runs.push_back(run);
    }
    return canonical(std::move(runs));
  }

  const LegacyExtendCall& call_;
  std::int64_t window_;
  const IntArray* mask_ = nullptr;    ///< null: causal order
  const IntArray* starts_ = nullptr;  ///< of each request's rows in the mask
  bool same_pool_ = false;
  NewTokens new_tokens_;
  SlotContents contents_;
  QueryRows rows_;
};

}  // namespace

Attended read(const LegacyExtendCall& call, const Problem& problem, const SlotMap& slots) {
  const double standard =
      1 / std::sqrt(static_cast<double>(std::max<std::int64_t>(1, call.q_extend.size(2))));
  return {.scale = call.sm_scale.value_or(standard),
          .softcap = std::max(0.0, call.logit_cap),
          .sinks = call.sinks.has_value(),
          .num_q_heads = call.q_extend.size(1),
          .num_kv_heads = distinct_heads(call.k_buffer, 1),
          .rows = LegacyReader(call, problem, slots).rows(problem)};
}

}  // namespace attest
