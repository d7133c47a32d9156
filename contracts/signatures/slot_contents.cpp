#include "contracts/signatures/slot_contents.hpp"

#include <algorithm>
#include <limits>
#include <tuple>

#include "contracts/signatures/query_rows.hpp"

namespace attest {
namespace {

void extend_or_push(std::vector<KeyRun>& runs, const KeyRun& run) {
  if (!runs.empty() && runs.back().sequence == run.sequence &&
      runs.back().first + runs.back().count == run.first) {
    runs.back().count += run.count;
  } else {
    runs.push_back(run);
  }
}

}  // namespace

void SlotContents::append(std::size_t row, std::int64_t token, std::int64_t first,
                          std::int64_t count, std::vector<KeyRun>& runs) {
  // No pool has slots past these; their ends must still be numbers.
  first = std::min(first, std::numeric_limits<std::int64_t>::max() - count);
  const bool known = row < problem_.requests.size() && problem_.requests[row].live;
  while (known && count > 0 && token < problem_.requests[row].kv_len()) {
    const Request& request = problem_.requests[row];
    std::int64_t step =
        std::min({count, slots_.page_size - token % slots_.page_size, request.kv_len() - token});
    if (token < request.shared_prefix) step = std::min(step, request.shared_prefix - token);
    if (slots_.slot(row, token) == first) {
      extend_or_push(runs, {content_of(request, token).sequence, token, step});
    } else {
      append_foreign(first, step, runs);
    }
    token += step;
    first += step;
    count -= step;
  }
  if (count > 0) append_foreign(first, count, runs);
}

void SlotContents::append_foreign(std::int64_t first, std::int64_t count,
                                  std::vector<KeyRun>& runs) {
  if (!built_) build();
  const std::int64_t last = first + count;
  auto at = std::upper_bound(segments_.begin(), segments_.end(), first,
                             [](std::int64_t slot, const Segment& s) { return slot < s.slot; });
  if (at != segments_.begin() && std::prev(at)->slot + std::prev(at)->count > first) --at;
  while (first < last) {
    const std::int64_t gap_end = at == segments_.end() ? last : std::min(last, at->slot);
    if (first < gap_end) {
      extend_or_push(runs, {unknown_sequence, first, gap_end - first});
      first = gap_end;
      continue;
    }
    const std::int64_t end = std::min(last, at->slot + at->count);
    extend_or_push(runs, {at->sequence, at->position + (first - at->slot), end - first});
    first = end;
    ++at;
  }
}

void SlotContents::add_segments_of(std::size_t i) {
  const Request& r = problem_.requests[i];
  for (std::int64_t t = 0; t < r.kv_len();) {
    std::int64_t step = std::min(slots_.page_size - t % slots_.page_size, r.kv_len() - t);
    if (t < r.shared_prefix) step = std::min(step, r.shared_prefix - t);
    const std::int64_t slot = slots_.slot(i, t);
    if (slot >= 0) segments_.push_back({slot, step, content_of(r, t).sequence, t});
    t += step;
  }
  // Encoder positions fall with the slot, so every one is a segment of its own.
  for (std::size_t j = 0; j < slots_.encoder_slots[i].size(); ++j) {
    segments_.push_back(
        {slots_.encoder_slots[i][j], 1, r.sequence, -1 - static_cast<std::int64_t>(j)});
  }
}

void SlotContents::build() {
  built_ = true;
  for (std::size_t i = 0; i < problem_.requests.size(); ++i) {
    if (problem_.requests[i].live) add_segments_of(i);
  }
  std::sort(segments_.begin(), segments_.end(), [](const Segment& a, const Segment& b) {
    return std::tie(a.slot, a.sequence, a.position) < std::tie(b.slot, b.sequence, b.position);
  });
  std::vector<Segment> disjoint;
  std::int64_t covered = 0;
  for (Segment s : segments_) {
    // Shared pages stand once per request, with the same content; one of them keeps the slots.
    const std::int64_t skip = std::clamp<std::int64_t>(covered - s.slot, 0, s.count);
    s = {s.slot + skip, s.count - skip, s.sequence, s.position + skip};
    if (s.count == 0) continue;
    covered = s.slot + s.count;
    disjoint.push_back(s);
  }
  segments_ = std::move(disjoint);
}

void RowKeys::append(const KeyRun& run) {
  const bool continues = !pieces_.empty() && pieces_.back().run.sequence == run.sequence &&
                         pieces_.back().run.first != outside_slot &&
                         pieces_.back().run.first + pieces_.back().run.count == run.first;
  if (continues) {
    pieces_.back().run.count += run.count;
  } else {
    pieces_.push_back({next_, run});
  }
  next_ += run.count;
}

void RowKeys::read(std::int64_t first, std::int64_t count) {
  scratch_.clear();
  contents_.append(row_, next_, first, count, scratch_);
  for (const KeyRun& run : scratch_) append(run);
}

void RowKeys::read_page(std::int64_t page, std::int64_t num_pages, std::int64_t page_size,
                        std::int64_t last) {
  const std::int64_t offset = next_ % page_size;
  const std::int64_t count = std::min(page_size - offset, last - next_);
  std::int64_t slot = 0;
  const bool inside = page >= 0 && page < num_pages &&
                      !__builtin_mul_overflow(page, page_size, &slot) && slot < largest_count;
  if (inside) {
    read(slot + offset, count);
  } else {
    read_outside(count);
  }
}

void RowKeys::read_outside(std::int64_t count) {
  if (count <= 0) return;
  const KeyRun run{unknown_sequence, outside_slot, count};
  const bool continues = !pieces_.empty() && pieces_.back().run.sequence == unknown_sequence &&
                         pieces_.back().run.first == outside_slot;
  if (continues) {
    pieces_.back().run.count += count;
  } else {
    pieces_.push_back({next_, run});
  }
  next_ += count;
}

std::vector<KeyRun> RowKeys::clipped(std::int64_t first, std::int64_t last) const {
  std::vector<KeyRun> runs;
  auto at = std::partition_point(pieces_.begin(), pieces_.end(), [first](const Piece& piece) {
    return piece.token + piece.run.count <= first;
  });
  std::int64_t outside = 0;
  for (; at != pieces_.end() && at->token < last; ++at) {
    const std::int64_t skip = std::max<std::int64_t>(0, first - at->token);
    const std::int64_t count = std::min(at->run.count, last - at->token) - skip;
    if (at->run.sequence == unknown_sequence && at->run.first == outside_slot) {
      outside += count;
    } else {
      runs.push_back({at->run.sequence, at->run.first + skip, count});
    }
  }
  runs = canonical(std::move(runs));
  // One run for everything outside, kept from merging with slot 0 beside it.
  if (outside > 0) runs.insert(runs.begin(), {unknown_sequence, outside_slot, outside});
  return runs;
}

}  // namespace attest
