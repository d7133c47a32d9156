#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "contracts/attended.hpp"

namespace attest {

/// Positions [begin, end) of a KeyStream.
struct StreamInterval {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  bool operator==(const StreamInterval&) const = default;
};

/// A run of keys and where it starts in the stream.
struct StreamRun {
  KeyRun keys;
  std::int64_t offset = 0;
  bool operator==(const StreamRun&) const = default;
};

/// All keys that a few rows see, each once, in one order, and which of them each row sees. A key
/// that some row reads twice stands in the stream twice.
struct KeyStream {
  std::vector<StreamRun> runs;  ///< by offset, gapless
  std::int64_t length = 0;
  /// Per row: sorted, disjoint, not touching.
  std::vector<std::vector<StreamInterval>> visible;
  /// Per row: 1 when it sees a slot that holds no content (left out of the stream).
  std::vector<std::uint8_t> sees_unknown;
};

/// The stream of meaning.rows[r] for r in `rows`; entry i of the result belongs to rows[i].
KeyStream make_key_stream(const Attended& meaning, std::span<const std::int64_t> rows);

/// Calls use(sequence, first position, count, stream offset) for each piece of [begin, end).
template <class Use>
void for_each_piece(const KeyStream& stream, StreamInterval part, Use&& use) {
  for (const StreamRun& run : stream.runs) {
    const std::int64_t begin = run.offset > part.begin ? run.offset : part.begin;
    const std::int64_t run_end = run.offset + run.keys.count;
    const std::int64_t end = run_end < part.end ? run_end : part.end;
    if (begin < end) {
      use(run.keys.sequence, run.keys.first + (begin - run.offset), end - begin, begin);
    }
  }
}

}  // namespace attest
