#include "backends/scalar/mla_work.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "backends/scalar/attend.hpp"
#include "backends/scalar/elements.hpp"
#include "backends/scalar/partial.hpp"
#include "backends/scalar/tile.hpp"

namespace attest {
namespace {

class Works {
 public:
  explicit Works(const Operands& op)
      : op_(op),
        group_(std::max<std::int64_t>(op.num_q_heads / op.num_kv_heads, 1)),
        out_(static_cast<std::size_t>(padded(op.v_head_dim))) {}

  void run(const WorkItem& work, const RowGroup& rows) {
    for (std::int64_t kv_head = 0; kv_head < op_.num_kv_heads; ++kv_head) {
      std::vector<Partial> results(rows.rows.size() * static_cast<std::size_t>(group_), fresh());
      attend_keys(rows, kv_head, results);
      for (std::size_t i = 0; i < results.size(); ++i) {
        const std::int64_t row = rows.rows[i / static_cast<std::size_t>(group_)].row;
        const std::int64_t head = kv_head * group_ + static_cast<std::int64_t>(i) % group_;
        if (work.partial < 0) {
          store(row, head, {&results[i], 1});
        } else {
          partials_[{work.partial + row - work.first_row, head}] = std::move(results[i]);
        }
      }
    }
  }

  void run(const MergeItem& merge, std::int64_t num_rows) {
    const std::int64_t first = std::max<std::int64_t>(merge.first_row, 0);
    const std::int64_t last = std::min(merge.last_row, num_rows);
    for (std::int64_t row = first; row < last; ++row) {
      for (std::int64_t head = 0; head < op_.num_q_heads; ++head) {
        std::vector<Partial> parts;
        for (const std::int64_t partial : merge.partials) {
          const auto found = partials_.find({partial + row - merge.first_row, head});
          parts.push_back(found != partials_.end() ? found->second : unwritten());
        }
        store(row, head, parts);
      }
    }
  }

 private:
  Partial fresh() const {
    return {.acc = std::vector<float>(static_cast<std::size_t>(padded(op_.v_head_dim)))};
  }
  Partial unwritten() const {
    constexpr float nan = std::numeric_limits<float>::quiet_NaN();
    return {.max = nan, .sum = nan, .acc = std::vector<float>(out_.size(), nan)};
  }

  void attend_keys(const RowGroup& rows, std::int64_t kv_head, std::vector<Partial>& results) {
    const auto keys = static_cast<std::int64_t>(rows.keys.size());
    std::vector<float> q(results.size() * static_cast<std::size_t>(op_.head_dim));
    const auto query = [&](std::size_t i) {
      return q.data() + i * static_cast<std::size_t>(op_.head_dim);
    };
    const auto row_of = [&](std::size_t i) -> const QueryRow& {
      return rows.rows[i / static_cast<std::size_t>(group_)];
    };
    for (std::size_t i = 0; i < results.size(); ++i) {
      const std::int64_t head = kv_head * group_ + static_cast<std::int64_t>(i) % group_;
      const std::int64_t at = row_of(i).row * op_.q_row_stride + head * op_.q_head_stride;
      widen(op_.q_dtype, op_.q + at * static_cast<std::int64_t>(size_bytes(op_.q_dtype)),
            op_.head_dim, query(i));
    }
    for (std::int64_t first = 0; first < keys; first += tile_keys) {
      tile_.load(op_, rows, kv_head, first, std::min(tile_keys, keys - first));
      for (std::size_t i = 0; i < results.size(); ++i) {
        const QueryRow& row = row_of(i);
        if (row.end <= first || row.begin >= first + tile_.count) continue;
        absorb(op_, tile_, row, query(i), results[i]);
      }
    }
  }

  void store(std::int64_t row, std::int64_t head, std::span<const Partial> parts) {
    const float lse = merge(op_, head, parts, out_.data());
    write_row(op_, row, head, out_.data(), lse);
  }

  const Operands& op_;
  const std::int64_t group_;
  std::vector<float> out_;
  /// By (row of the buffer, q head).
  std::map<std::pair<std::int64_t, std::int64_t>, Partial> partials_;
  Tile tile_;
};

}  // namespace

void attend_works(const Operands& op, const WorkLists& lists, std::span<const RowGroup> groups) {
  Works works(op);
  for (std::size_t i = 0; i < groups.size(); ++i) works.run(lists.works[i], groups[i]);
  const std::int64_t row_bytes =
      op.out_row_stride * static_cast<std::int64_t>(size_bytes(op.out_dtype));
  const auto rows = row_bytes > 0 ? static_cast<std::int64_t>(op.out.size()) / row_bytes : 0;
  for (const MergeItem& merge : lists.merges) works.run(merge, rows);
}

}  // namespace attest
