#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "contracts/slot_map.hpp"
#include "memory/kv_pool.hpp"
#include "memory/tensor_layout.hpp"
#include "memory/tensor_source.hpp"

namespace attest {

/// Which slots of a pool hold which tokens, and the bytes of every page in use: rows of content,
/// and poison in the rest of the page. The source must outlive it.
class PoolContents {
 public:
  PoolContents(const TensorSource& source, PoolHalf half, const TensorMeta& meta, Stored stored);

  const PoolLayout& layout() const { return layout_; }
  PoolHalf half() const { return half_; }
  /// Units (pages) in use, ascending.
  const std::vector<std::int64_t>& units() const { return units_; }

  /// Writes the whole byte range of units()[index] to `out`.
  /// \pre out.size() is the unit's length.
  void render(std::size_t index, std::span<std::byte> out) const;

  /// "slot 37 head 1 element 6" of a byte offset from the base.
  std::string place(std::int64_t byte) const;

 private:
  /// Consecutive slots holding consecutive tokens.
  struct Run {
    std::int64_t slot = 0;
    std::int64_t count = 0;
    ContentKey first;
    std::int64_t step = 1;  ///< of the position per slot; -1 for encoder tokens
    bool stored = true;     ///< false: a new token the kernel stores itself
    std::size_t order = 0;  ///< earlier ones count where two claim a slot
  };

  void add_request(std::size_t i, Stored stored);
  void add_run(Run run);
  void write_slot(const ContentKey& key, std::byte* row) const;
  void poison_slot(Region region, std::byte* row) const;
  bool rows_fill_units() const;

  const TensorSource* source_;
  PoolHalf half_;
  PoolLayout layout_;
  std::int64_t content_heads_;  ///< kv heads of the model; the view may show more (expanded ones)
  std::vector<Run> runs_;       ///< by unit, then in the order of the requests
  std::vector<std::int64_t> units_;
  std::vector<std::size_t> first_run_;  ///< of each unit, and runs_.size() behind them
};

}  // namespace attest
