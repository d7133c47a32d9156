#include "memory/kv_pool.hpp"

#include <algorithm>
#include <cstring>
#include <iomanip>
#include <sstream>
#include <utility>

#include "memory/guarded_buffer.hpp"
#include "memory/pool_contents.hpp"
#include "memory/pool_memory.hpp"

namespace attest {

struct KvPool::State {
  PoolContents contents;
  Poison poison;
  std::unique_ptr<KvMemory> memory;
  std::vector<ByteRange> units;             ///< byte ranges of contents.units()
  std::vector<std::uint64_t> fingerprints;  ///< of each unit, after construction

  std::span<std::byte> bytes(const ByteRange& range) const {
    return {memory->base() + range.begin, static_cast<std::size_t>(range.end - range.begin)};
  }
  std::string changed(std::int64_t byte, std::byte expected) const;
  std::vector<ByteRange> rows_of(std::span<const std::int64_t> slots) const;
  std::optional<std::string> unit_damage(std::size_t index,
                                         std::span<const ByteRange> written) const;
  std::optional<std::string> gap_damage(const ByteRange& gap,
                                        std::span<const ByteRange> written) const;
  std::optional<std::string> poison_damage(const ByteRange& range, Region region) const;
};

namespace {

/// A page id of -1, or one past the last page, must meet poison and not the heap.
constexpr std::int64_t largest_margin = std::int64_t{1} << 20;

std::vector<ByteRange> ranges_of_units(const PoolContents& contents) {
  std::vector<ByteRange> ranges;
  for (const std::int64_t unit : contents.units()) {
    ranges.push_back({contents.layout().unit_begin(unit), contents.layout().unit_end(unit)});
  }
  return ranges;
}

std::unique_ptr<KvMemory> memory_for(const PoolContents& contents, Poison poison,
                                     const std::vector<ByteRange>& units) {
  const PoolLayout& layout = contents.layout();
  PoolRequest request;
  request.span_bytes = layout.span_bytes();
  request.dtype = layout.dtype;
  request.poison = poison;
  const std::int64_t unit_bytes = layout.units() > 1 ? layout.unit_begin(1) : request.span_bytes;
  request.margin_bytes = std::min(unit_bytes, largest_margin);
  if (request.span_bytes > largest_dense_pool) {
    request.in_use = units;
    return make_large_memory(request, large_pool_wanted());
  }
  return make_dense_memory(request);
}

/// The part of an ascending list that begins inside `range`.
std::span<const ByteRange> within(std::span<const ByteRange> list, const ByteRange& range) {
  const auto begins_before = [](const ByteRange& a, std::int64_t b) { return a.begin < b; };
  const auto first = std::lower_bound(list.begin(), list.end(), range.begin, begins_before);
  const auto last = std::lower_bound(first, list.end(), range.end, begins_before);
  return {first, last};
}

}  // namespace

KvPool::KvPool(const TensorSource& source, PoolHalf half, const TensorMeta& meta, Stored stored)
    : state_(std::make_unique<State>(State{
          PoolContents(source, half, meta, stored), source.poison().poison, nullptr, {}, {}})) {
  State& s = *state_;
  s.units = ranges_of_units(s.contents);
  s.memory = memory_for(s.contents, s.poison, s.units);
  for (std::size_t i = 0; i < s.units.size(); ++i) {
    s.contents.render(i, s.bytes(s.units[i]));
    s.fingerprints.push_back(fingerprint(s.bytes(s.units[i])));
  }
}

KvPool::KvPool(KvPool&&) noexcept = default;
KvPool& KvPool::operator=(KvPool&&) noexcept = default;
KvPool::~KvPool() = default;

std::byte* KvPool::base() const { return state_->memory->base(); }
std::int64_t KvPool::before_bytes() const { return state_->memory->before_bytes(); }
std::int64_t KvPool::span_bytes() const { return state_->contents.layout().span_bytes(); }
bool KvPool::sparse() const { return state_->memory->sparse(); }

std::string_view KvPool::note() const { return state_->memory->note(); }

void KvPool::add_stray_reads(std::vector<StrayRead>& reads) const {
  for (StrayRead read : state_->memory->stray_reads()) {
    read.half = state_->contents.half();
    reads.push_back(read);
  }
}

bool KvPool::writable(std::int64_t offset, std::int64_t bytes) const {
  const std::span<const ByteRange> ranges = state_->memory->writable();
  return std::any_of(ranges.begin(), ranges.end(), [&](const ByteRange& range) {
    return offset >= range.begin && offset + bytes <= range.end;
  });
}

std::vector<PoolBytes> KvPool::contents() const {
  const State& s = *state_;
  std::vector<PoolBytes> list;
  for (const ByteRange& range : s.memory->writable()) {
    ByteRange kept = range;
    if (s.memory->sparse()) {
      kept.begin = std::max<std::int64_t>(kept.begin, 0);
      kept.end = std::min(kept.end, span_bytes());
    }
    if (kept.begin < kept.end) list.push_back({kept.begin, s.bytes(kept)});
  }
  return list;
}

std::uint32_t KvPool::background() const {
  const Dtype dtype = state_->contents.layout().dtype;
  const std::uint32_t bits = poison_bits(dtype, state_->poison, Region::unreferenced);
  switch (size_bytes(dtype)) {
    case 1:
      return bits * 0x01010101U;
    case 2:
      return bits * 0x00010001U;
    default:
      return bits;
  }
}

std::optional<std::string> KvPool::damage(std::span<const std::int64_t> written_slots) const {
  const State& s = *state_;
  const std::vector<ByteRange> written = s.rows_of(written_slots);
  std::size_t next = 0;
  for (const ByteRange& writable : s.memory->writable()) {
    std::int64_t from = writable.begin;
    for (; next < s.units.size() && s.units[next].begin < writable.end; ++next) {
      if (auto damage = s.gap_damage({from, s.units[next].begin}, written)) return damage;
      if (auto damage = s.unit_damage(next, written)) return damage;
      from = s.units[next].end;
    }
    if (auto damage = s.gap_damage({from, writable.end}, written)) return damage;
  }
  return std::nullopt;
}

/// Byte ranges of the rows of `slots`, ascending.
std::vector<ByteRange> KvPool::State::rows_of(std::span<const std::int64_t> slots) const {
  const PoolLayout& layout = contents.layout();
  const auto bytes_each = static_cast<std::int64_t>(size_bytes(layout.dtype));
  std::vector<ByteRange> rows;
  for (const std::int64_t slot : slots) {
    if (slot < 0 || slot >= layout.slots) continue;
    for (std::int64_t head = 0; head < layout.heads; ++head) {
      const std::int64_t at = (layout.offset(slot) + head * layout.head_stride) * bytes_each;
      rows.push_back({at, at + layout.row_bytes()});
    }
  }
  std::sort(rows.begin(), rows.end(),
            [](const ByteRange& a, const ByteRange& b) { return a.begin < b.begin; });
  return rows;
}

std::string KvPool::State::changed(std::int64_t byte, std::byte expected) const {
  std::ostringstream os;
  os << (contents.half() == PoolHalf::k ? "K" : "V") << " pool: byte " << byte << " ("
     << contents.place(byte) << ") changed from 0x" << std::hex << std::setfill('0') << std::setw(2)
     << std::to_integer<int>(expected) << " to 0x" << std::setw(2)
     << std::to_integer<int>(memory->base()[byte]);
  return os.str();
}

std::optional<std::string> KvPool::State::unit_damage(std::size_t index,
                                                      std::span<const ByteRange> written) const {
  const ByteRange unit = units[index];
  const std::span<const std::byte> now = bytes(unit);
  if (fingerprint(now) == fingerprints[index]) return std::nullopt;
  std::vector<std::byte> expected(now.size());
  contents.render(index, expected);
  for (const ByteRange& row : within(written, unit)) {  // may hold anything
    const auto at = static_cast<std::size_t>(row.begin - unit.begin);
    std::copy_n(now.data() + at, row.end - row.begin, expected.data() + at);
  }
  const auto [got, want] = std::mismatch(now.begin(), now.end(), expected.begin());
  if (got == now.end()) return std::nullopt;
  return changed(unit.begin + (got - now.begin()), *want);
}

/// Bytes between units: poison of the region they lie in.
std::optional<std::string> KvPool::State::gap_damage(const ByteRange& gap,
                                                     std::span<const ByteRange> written) const {
  const std::int64_t span = contents.layout().span_bytes();
  const ByteRange before = {gap.begin, std::min<std::int64_t>(gap.end, 0)};
  if (auto damage = poison_damage(before, Region::before_base)) return damage;
  std::int64_t from = std::max<std::int64_t>(gap.begin, 0);
  for (const ByteRange& row : within(written, gap)) {
    if (auto damage = poison_damage({from, row.begin}, Region::unreferenced)) return damage;
    from = row.end;
  }
  if (auto damage = poison_damage({from, std::min(gap.end, span)}, Region::unreferenced)) {
    return damage;
  }
  return poison_damage({std::max(gap.begin, span), gap.end}, Region::past_end);
}

std::optional<std::string> KvPool::State::poison_damage(const ByteRange& range,
                                                        Region region) const {
  if (range.begin >= range.end) return std::nullopt;
  const PoolLayout& layout = contents.layout();
  const auto at = first_not_poison(bytes(range), layout.dtype, poison, region);
  if (!at) return std::nullopt;
  const std::uint32_t bits = poison_bits(layout.dtype, poison, region);
  const std::size_t lane = *at % size_bytes(layout.dtype);
  return changed(range.begin + static_cast<std::int64_t>(*at),
                 static_cast<std::byte>(bits >> (8 * lane)));
}

}  // namespace attest
