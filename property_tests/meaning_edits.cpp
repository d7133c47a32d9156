#include "property_tests/meaning_edits.hpp"

namespace attest {

void add_positions(const Request& r, std::int64_t first, std::int64_t last,
                   std::vector<KeyRun>& keys) {
  first = std::max<std::int64_t>(0, first);
  const std::int64_t split = std::clamp(r.shared_prefix, first, std::max(first, last));
  keys.push_back({r.shared_sequence, first, split - first});
  keys.push_back({r.sequence, split, last - split});
}

void drop_positions(std::vector<KeyRun>& keys, std::int64_t first, std::int64_t last) {
  std::vector<KeyRun> kept;
  for (const KeyRun& run : keys) {
    const std::int64_t end = run.first + run.count;
    kept.push_back({run.sequence, run.first, std::min(end, first) - run.first});
    const std::int64_t begin = std::max(run.first, last);
    kept.push_back({run.sequence, begin, end - begin});
  }
  keys = std::move(kept);
}

}  // namespace attest
