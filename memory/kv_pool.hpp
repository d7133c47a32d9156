#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "contracts/call.hpp"
#include "memory/tensor_source.hpp"

namespace attest {

/// Which of the two pools of a layer.
enum class PoolHalf { k, v };

/// Which tokens' keys lie in the pool before the call: the decode signature stores the new one
/// itself.
enum class Stored { committed, committed_and_new };

/// One K or V pool on the host, as a kernel sees it: referenced slots hold their content, every
/// other byte holds poison. Pools up to 64 MiB are plain guarded memory. Larger ones are sparse:
/// address space for the whole pool and `before` bytes in front of it, one poison page mapped
/// (read-only) everywhere, real memory only under referenced pages. A stray write then faults.
class KvPool {
 public:
  /// \param meta  (num_pages, page_size, heads, dim) or (num_slots, heads, dim); its strides are
  ///              honoured, a stride-0 head dimension too (all heads then alias head 0's bytes).
  /// \throws std::system_error when the address space cannot be had.
  KvPool(const TensorSource& source, PoolHalf half, const TensorMeta& meta, Stored stored);
  KvPool(KvPool&&) noexcept;
  ~KvPool();

  /// Element 0 of the view. Bytes in [base() - before_bytes(), base() + span) are readable.
  std::byte* base() const;
  std::int64_t before_bytes() const;
  bool sparse() const;

  /// First changed byte outside `written_slots`, in words, or nothing. Sparse pools check their
  /// referenced pages (the rest is read-only).
  std::optional<std::string> damage(std::span<const std::int64_t> written_slots) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace attest
