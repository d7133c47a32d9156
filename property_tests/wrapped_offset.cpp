#include "property_tests/wrapped_offset.hpp"

#include <algorithm>
#include <stdexcept>

#include "contracts/signatures/pool_view.hpp"

namespace attest {
namespace {

/// With tokens before heads.
TensorMeta pool_meta(const Call& call, PoolHalf half) {
  const bool k = half == PoolHalf::k;
  if (const auto* u = std::get_if<UnifiedCall>(&call)) return k ? u->k : u->v;
  if (const auto* e = std::get_if<ExtendCall>(&call)) return k ? e->k_buffer : e->v_buffer;
  if (const auto* d = std::get_if<DecodeCall>(&call)) return k ? d->k_buffer : d->v_buffer;
  if (const auto* b = std::get_if<BatchPrefillCall>(&call)) return k ? b->k : b->v;
  if (const auto* p = std::get_if<PagedRaggedCall>(&call)) return k ? p->key_cache : p->value_cache;
  if (const auto* l = std::get_if<LegacyExtendCall>(&call)) return k ? l->k_buffer : l->v_buffer;
  if (const auto* c = std::get_if<VllmCpuCall>(&call)) {
    return swap_heads_and_tokens(k ? c->key_cache : c->value_cache);
  }
  return std::get<MlaDecodeCall>(call).kv_buffer;
}

std::int64_t wrapped(std::int64_t byte, const Boundary& wrap, std::int64_t element_bytes) {
  const std::int64_t unit = wrap.unit == OffsetUnit::bytes ? 1 : element_bytes;
  const std::int64_t at = byte / unit;
  const std::int64_t kept = wrap.bits == 31
                                ? static_cast<std::int32_t>(at)
                                : static_cast<std::int64_t>(static_cast<std::uint32_t>(at));
  return kept * unit + byte % unit;
}

}  // namespace

WrappedOffsets::WrappedOffsets(const Call& call, const TensorSource& source)
    : source_(source), contents_(contents_by_slot(source.problem(), source.slots())) {
  const bool mla = source.problem().model.mla;
  for (const PoolHalf half : {PoolHalf::k, PoolHalf::v}) {
    if (half == PoolHalf::v && mla) break;
    try {
      Pool pool{
          half, pool_layout(pool_meta(call, half), source.problem().pool.page_size, "pool"), {}};
      const auto bytes = static_cast<std::int64_t>(size_bytes(pool.layout.dtype));
      for (const auto& [slot, key] : contents_) {
        if (slot < pool.layout.slots) {
          pool.slots.push_back({slot, pool.layout.offset(slot) * bytes});
        }
      }
      std::sort(pool.slots.begin(), pool.slots.end(),
                [](const Slot& a, const Slot& b) { return a.slot < b.slot; });
      pools_.push_back(std::move(pool));
    } catch (const std::invalid_argument&) {
      break;  // a view that nothing is stored in
    }
  }
}

std::string WrappedOffsets::in_words(const Pool& pool, const Slot& slot, const Wrap& wrap) const {
  const PoolLayout& layout = pool.layout;
  const std::int64_t page_size = source_.problem().pool.page_size;
  const bool pages = page_size > 1;
  // From the begin of its page, unless the boundary lies inside.
  const auto bytes = static_cast<std::int64_t>(size_bytes(layout.dtype));
  const std::int64_t first = pages ? slot.slot / page_size * page_size : slot.slot;
  std::int64_t from = layout.offset(first) * bytes;
  std::string place = pages ? "page " + grouped(slot.slot / page_size) : "slot " + grouped(first);
  if (wrapped(from, wrap, bytes) == from) {
    from = slot.byte;
    place = "slot " + grouped(slot.slot);
  }
  return "offset of " + std::string(pool.half == PoolHalf::k ? "K" : "V") + " wrapped at " +
         name(wrap) + ": " + place + " read at " + grouped(wrapped(from, wrap, bytes));
}

std::optional<std::string> WrappedOffsets::explain(std::span<const StrayRead> reads,
                                                   const Pool& pool, const Wrap& wrap) const {
  const PoolLayout& layout = pool.layout;
  const auto bytes = static_cast<std::int64_t>(size_bytes(layout.dtype));
  const std::int64_t row =
      ((layout.heads - 1) * layout.head_stride + layout.dim) * bytes;  // all heads of a slot
  const Slot* first = nullptr;
  for (const StrayRead& read : reads) {
    if (read.half != pool.half) continue;
    const auto leads_there = [&](const Slot& slot) {
      const std::int64_t at = wrapped(slot.byte, wrap, bytes);
      // A row may itself lie across the boundary: then its end wraps alone.
      const std::int64_t end = wrapped(slot.byte + row - bytes, wrap, bytes) + bytes;
      const bool by_begin = at != slot.byte && read.offset >= at && read.offset < at + row;
      const bool by_end = end != slot.byte + row && read.offset < end && read.offset >= end - row;
      return by_begin || by_end;
    };
    const auto found = std::find_if(pool.slots.begin(), pool.slots.end(), leads_there);
    if (found == pool.slots.end()) return std::nullopt;
    if (first == nullptr) first = &*found;
  }
  if (first == nullptr) return std::nullopt;
  return in_words(pool, *first, wrap);
}

/// Whether every live slot that this wrap moves was seen where it moves to.
bool WrappedOffsets::all_were_read(std::span<const StrayRead> reads, const Pool& pool,
                                   const Wrap& wrap) const {
  constexpr std::int64_t stretch = 65536;  // of the log: first reads only
  const auto number = [](std::int64_t at) { return (at >= 0 ? at : at - stretch + 1) / stretch; };
  const auto bytes = static_cast<std::int64_t>(size_bytes(pool.layout.dtype));
  return std::all_of(pool.slots.begin(), pool.slots.end(), [&](const Slot& slot) {
    const std::int64_t to = wrapped(slot.byte, wrap, bytes);
    if (to == slot.byte || content_at(pool, to)) return true;
    return std::any_of(reads.begin(), reads.end(), [&](const StrayRead& read) {
      return read.half == pool.half && number(read.offset) == number(to);
    });
  });
}

std::optional<std::string> WrappedOffsets::explain(std::span<const StrayRead> reads) const {
  // A sign shows: lower 32 bits alone never lead in front of the base.
  const bool negative = std::any_of(reads.begin(), reads.end(),
                                    [](const StrayRead& read) { return read.offset < 0; });
  // Keys may stay unread (a window), so the wrap that moved nothing but what was read is preferred,
  // not required.
  for (const bool exactly : {true, false}) {
    for (const Pool& pool : pools_) {
      for (const Wrap& wrap : all_wraps()) {
        if ((wrap.bits == 31) != negative) continue;
        if (exactly && !all_were_read(reads, pool, wrap)) continue;
        if (auto text = explain(reads, pool, wrap)) return text;
      }
    }
  }
  return std::nullopt;
}

std::optional<ContentKey> WrappedOffsets::content_at(const Pool& pool, std::int64_t byte) const {
  const PoolLayout& layout = pool.layout;
  const std::int64_t at = byte / static_cast<std::int64_t>(size_bytes(layout.dtype));
  if (at < 0 || layout.page_stride <= 0) return std::nullopt;
  std::int64_t slot = at / layout.page_stride * layout.page_slots;
  const std::int64_t rest = at % layout.page_stride;
  if (rest != 0) {
    if (layout.slot_stride <= 0 || rest % layout.slot_stride != 0) return std::nullopt;
    slot += rest / layout.slot_stride;
  }
  const auto found = contents_.find(slot);
  return found == contents_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<Attended> WrappedOffsets::meaning(const Attended& truth, const Wrap& wrap) const {
  if (pools_.empty()) return std::nullopt;
  const Pool& k = pools_.front();
  const auto bytes = static_cast<std::int64_t>(size_bytes(k.layout.dtype));
  std::unordered_map<std::int64_t, std::unordered_map<std::int64_t, ContentKey>> moved;
  for (const Slot& slot : k.slots) {
    const std::int64_t to = wrapped(slot.byte, wrap, bytes);
    if (to == slot.byte) continue;
    const ContentKey& from = contents_.at(slot.slot);
    const auto there = content_at(k, to);
    if (!there) return std::nullopt;
    moved[from.sequence][from.position] = *there;
  }
  if (moved.empty()) return std::nullopt;
  Attended meaning = truth;
  for (AttendedRow& row : meaning.rows) {
    std::vector<KeyRun> keys;
    for (const KeyRun& run : row.keys) {
      const auto of_sequence = moved.find(run.sequence);
      for (std::int64_t j = 0; j < run.count; ++j) {
        KeyRun one{run.sequence, run.first + j, 1};
        if (of_sequence != moved.end()) {
          const auto found = of_sequence->second.find(one.first);
          if (found != of_sequence->second.end()) {
            one = {found->second.sequence, found->second.position, 1};
          }
        }
        keys.push_back(one);
      }
    }
    row.keys = std::move(keys);
  }
  return meaning;
}

std::string WrappedOffsets::in_words(const Wrap& wrap) const {
  for (const Pool& pool : pools_) {
    const auto bytes = static_cast<std::int64_t>(size_bytes(pool.layout.dtype));
    for (const Slot& slot : pool.slots) {
      if (wrapped(slot.byte, wrap, bytes) != slot.byte) return in_words(pool, slot, wrap);
    }
  }
  return "offset wrapped at " + name(wrap);
}

std::optional<std::string> WrappedOffsets::explain_zeros(const Output& got,
                                                         const Attended& truth) const {
  constexpr std::int64_t descriptor = (std::int64_t{1} << 31) - 2;
  const auto past = [](const Slot& slot) { return slot.byte >= descriptor; };
  for (const Pool& pool : pools_) {
    if (std::none_of(pool.slots.begin(), pool.slots.end(), past)) return std::nullopt;
  }
  const auto rows = std::min(static_cast<std::int64_t>(truth.rows.size()), got.rows);
  for (std::int64_t row = 0; row < rows; ++row) {
    if (truth.rows[static_cast<std::size_t>(row)].expect != RowExpectation::value) continue;
    const auto begin = got.values.begin() + static_cast<std::ptrdiff_t>(got.index(row, 0, 0));
    const auto end = begin + static_cast<std::ptrdiff_t>(got.heads * got.dim);
    if (!std::all_of(begin, end, [](float value) { return value == 0; })) continue;
    return "row " + std::to_string(row) +
           " is all zero: its keys lie past 2^31 - 2 bytes, where a buffer descriptor of that size "
           "gives zeros";
  }
  return std::nullopt;
}

}  // namespace attest
