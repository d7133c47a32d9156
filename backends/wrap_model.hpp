#pragma once

#include <cstdint>

namespace attest {

/// The offset of a key is page * page_stride + slot * slot_stride + head * head_stride elements,
/// times the element's bytes. After which step of that a kernel keeps only 32 bits.
enum class WrapStep : std::int32_t { none, page_product, slot_sum, head_sum, bytes };

/// What becomes of an offset that does not fit.
enum class WrapKind : std::int32_t {
  int32,       ///< kept modulo 2^32 with a sign: negative from 2^31 on
  uint32,      ///< kept modulo 2^32
  descriptor,  ///< modulo 2^32, and zero is read from 2^31 - 2 bytes on: an AMD buffer descriptor
               ///< whose num_records is 0x7ffffffe
};

/// A mistake in the address arithmetic of a kernel. The default is none.
struct WrapModel {
  WrapStep step = WrapStep::none;
  WrapKind kind = WrapKind::int32;
  bool in_k = true, in_v = true;
  /// Only where the indices are int32: the chain is computed in the dtype of seqused_k (unified) or
  /// of the table.
  bool follows_index_dtype = false;

  bool operator==(const WrapModel&) const = default;
};

/// Byte offset that a kernel with this mistake computes; `no_bytes` for one that reads zero.
inline constexpr std::int64_t no_bytes = INT64_MIN;

constexpr std::int64_t cut(std::int64_t value, WrapKind kind) {
  return kind == WrapKind::int32 ? static_cast<std::int32_t>(value)
                                 : static_cast<std::int64_t>(static_cast<std::uint32_t>(value));
}

constexpr std::int64_t wrapped_bytes(const WrapModel& model, std::int64_t page_product,
                                     std::int64_t slot_term, std::int64_t head_term,
                                     std::int64_t element_bytes) {
  std::int64_t at = page_product;
  if (model.step == WrapStep::page_product) at = cut(at, model.kind);
  at += slot_term;
  if (model.step == WrapStep::slot_sum) at = cut(at, model.kind);
  at += head_term;
  if (model.step == WrapStep::head_sum) at = cut(at, model.kind);
  at *= element_bytes;
  if (model.step == WrapStep::bytes) at = cut(at, model.kind);
  if (model.kind == WrapKind::descriptor && static_cast<std::uint32_t>(at) >= 0x7ffffffeU) {
    return no_bytes;
  }
  return at;
}

}  // namespace attest
