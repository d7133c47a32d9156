#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "contracts/address_interval.hpp"
#include "contracts/attended.hpp"
#include "contracts/call.hpp"
#include "contracts/output.hpp"
#include "memory/stray_read.hpp"
#include "memory/tensor_layout.hpp"
#include "memory/tensor_source.hpp"

namespace attest {

/// Explains what a kernel read by an offset that lost its upper bits: which page, at which modulus,
/// read where.
class WrappedOffsets {
 public:
  /// 2^31: the offset became a signed 32-bit number. 2^32: its lower 32 bits.
  using Wrap = Boundary;
  static std::span<const Wrap> all_wraps() { return all_boundaries(); }

  /// A call without a pool it can lay out has nothing to explain.
  WrappedOffsets(const Call& call, const TensorSource& source);

  /// "offset of K wrapped at 2^31 bytes: page 65,537 read at -2,147,450,880": the first wrap for
  /// which every read in the log lies in a row of a live page, wrapped.
  std::optional<std::string> explain(std::span<const StrayRead> reads) const;

  /// What every row sees where keys past the boundary come from the wrapped address; nothing where
  /// some of these hold no key, or none changes.
  std::optional<Attended> meaning(const Attended& truth, const Wrap& wrap) const;
  std::string in_words(const Wrap& wrap) const;

  /// Rows of zeros where every key lies past 2^31 bytes: a buffer descriptor gives zeros there.
  std::optional<std::string> explain_zeros(const Output& got, const Attended& truth) const;

 private:
  struct Slot {
    std::int64_t slot = 0;
    std::int64_t byte = 0;  ///< of its first head from the base
  };
  struct Pool {
    PoolHalf half;
    PoolLayout layout;
    std::vector<Slot> slots;  ///< live ones, ascending
  };
  std::optional<std::string> explain(std::span<const StrayRead> reads, const Pool& pool,
                                     const Wrap& wrap) const;
  bool all_were_read(std::span<const StrayRead> reads, const Pool& pool, const Wrap& wrap) const;
  std::string in_words(const Pool& pool, const Slot& slot, const Wrap& wrap) const;
  std::optional<ContentKey> content_at(const Pool& pool, std::int64_t byte) const;

  const TensorSource& source_;
  std::vector<Pool> pools_;  ///< K, and V where it is another one
  std::unordered_map<std::int64_t, ContentKey> contents_;
};

}  // namespace attest
