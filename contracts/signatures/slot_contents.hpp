#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "contracts/attended.hpp"
#include "contracts/problem.hpp"
#include "contracts/slot_map.hpp"

namespace attest {

/// Which content a range of slots holds: the inverse of a SlotMap, by intervals instead of tokens.
class SlotContents {
 public:
  SlotContents(const Problem& problem, const SlotMap& slots) : problem_(problem), slots_(slots) {}

  /// Appends the contents of slots [first, first + count), a kernel's tokens token, token + 1, ...
  /// of batch row `row`. The row's own request is looked up first: a call that is right costs one
  /// comparison a page. Runs that continue the last one of `runs` are merged into it.
  void append(std::size_t row, std::int64_t token, std::int64_t first, std::int64_t count,
              std::vector<KeyRun>& runs);

 private:
  struct Segment {
    std::int64_t slot, count;
    std::int64_t sequence, position;
  };
  void append_foreign(std::int64_t first, std::int64_t count, std::vector<KeyRun>& runs);
  void add_segments_of(std::size_t request);
  void build();

  const Problem& problem_;
  const SlotMap& slots_;
  bool built_ = false;
  std::vector<Segment> segments_;  ///< disjoint, sorted by slot
};

/// What one batch row of a call reads: its key-value tokens in logical order, clipped per query
/// row.
class RowKeys {
 public:
  /// Tokens before `first_token` are not recorded: no query row sees them.
  RowKeys(SlotContents& contents, std::size_t row, std::int64_t first_token)
      : contents_(contents), row_(row), next_(first_token) {}

  /// The next `count` tokens lie in slots first, first + 1, ...
  void read(std::int64_t first, std::int64_t count);
  /// The next tokens, to the end of their page or to token `last`, lie in `page` of a cache of
  /// `num_pages`; outside it they are read outside. \pre 1 <= page_size, next_token() < last
  void read_page(std::int64_t page, std::int64_t num_pages, std::int64_t page_size,
                 std::int64_t last);
  /// The next `run.count` tokens hold this content, wherever they lie: new keys that a kernel takes
  /// from beside the pool.
  void append(const KeyRun& run);
  /// The next `count` tokens are read outside an array.
  void read_outside(std::int64_t count);
  std::int64_t next_token() const { return next_; }

  /// Keys of tokens [first, last), canonical. Tokens never read are left out.
  std::vector<KeyRun> clipped(std::int64_t first, std::int64_t last) const;
  std::size_t pieces() const { return pieces_.size(); }

 private:
  struct Piece {
    std::int64_t token;
    KeyRun run;
  };
  SlotContents& contents_;
  std::size_t row_;
  std::int64_t next_;
  std::vector<Piece> pieces_;  ///< by token, without gaps
  std::vector<KeyRun> scratch_;
};

/// Slot of a KeyRun whose bytes lie outside an array.
inline constexpr std::int64_t outside_slot = -1;

}  // namespace attest
