#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "contracts/call.hpp"
#include "memory/stray_read.hpp"
#include "memory/tensor_source.hpp"

namespace attest {

/// Which tokens' keys lie in the pool before the call: the decode signature stores the new one
/// itself.
enum class Stored { committed, committed_and_new };

/// Pools up to this span are plain memory.
inline constexpr std::int64_t largest_dense_pool = std::int64_t{64} << 20;

/// `bytes.size()` bytes of a pool, the first at `offset` from its base.
struct PoolBytes {
  std::int64_t offset = 0;
  std::span<const std::byte> bytes;
};

/// One K or V pool on the host, as a kernel sees it: referenced slots hold their content, every
/// other byte holds poison (memory/poison.hpp). Pools up to 64 MiB are plain memory with a page of
/// poison on both sides. Larger ones are sparse: address space for the whole pool and
/// `before_bytes` in front of it (4 GiB, 8 GiB for f32: where a wrapped 32-bit offset lands),
/// poison everywhere that nobody can write, real memory only under referenced pages. A stray write
/// then faults, a stray read of a stretch of poison is logged. ATTEST_KV_MEMORY=eager or dense
/// takes another kind of memory (memory/pool_memory.hpp), as does a machine that cannot have the
/// first.
///
/// MLA has one pool: construct PoolHalf::k and read V as the first v_head_dim elements of its rows.
class KvPool {
 public:
  /// \param source must outlive the pool.
  /// \param meta  (num_pages, page_size, heads, dim) or (num_slots, heads, dim); its strides are
  ///              honoured, a stride-0 head dimension too (all heads then alias head 0's bytes). A
  ///              view with g times the model's kv heads shows each of them g times. Slots outside
  ///              the view are left out.
  /// \throws PoolUnavailable when no kind of memory can be had; std::invalid_argument for a view
  ///         that is not one of those two.
  KvPool(const TensorSource& source, PoolHalf half, const TensorMeta& meta, Stored stored);
  KvPool(KvPool&&) noexcept;
  KvPool& operator=(KvPool&&) noexcept;
  ~KvPool();

  /// Element 0 of the view. Bytes in [base() - before_bytes(), base() + span_bytes()) are readable.
  std::byte* base() const;
  std::int64_t before_bytes() const;
  std::int64_t span_bytes() const;
  bool sparse() const;
  /// Whether bytes [offset, offset + bytes) from base() can be written: a store elsewhere in a
  /// sparse pool kills the process, as it may on a device.
  bool writable(std::int64_t offset, std::int64_t bytes) const;

  /// Appends the reads of poison that were noticed so far (lazy memory).
  void add_stray_reads(std::vector<StrayRead>& reads) const;
  /// "eager KV memory instead of lazy: ...", or nothing where it is the kind that was wanted.
  std::string_view note() const;

  /// What an engine with memory of its own copies: ascending byte ranges from base(). The bytes of
  /// [0, span_bytes()) outside them repeat background(). Plain memory is one range, margins
  /// included; of sparse memory what lies in front of the base is left out.
  std::vector<PoolBytes> contents() const;
  /// Four bytes of the poison between, in memory order; 16-bit patterns twice, 8-bit ones four
  /// times.
  std::uint32_t background() const;

  /// First changed byte outside `written_slots`, in words, or nothing. Sparse pools check their
  /// referenced pages (the rest is read-only).
  std::optional<std::string> damage(std::span<const std::int64_t> written_slots) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace attest
