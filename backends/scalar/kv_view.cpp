#include "backends/scalar/kv_view.hpp"

namespace attest {

KvView::KvView(const std::byte* base, std::int64_t before, std::int64_t span,
               const TensorMeta& meta)
    : base_(base),
      dtype_(meta.dtype),
      before_(before),
      span_(span),
      element_bytes_(static_cast<std::int64_t>(size_bytes(meta.dtype))) {
  // Three dimensions: a page is one slot.
  const bool paged = meta.shape.size() == 4;
  page_stride_ = meta.stride(0);
  slot_stride_ = paged ? meta.stride(1) : 0;
  const std::size_t head_dimension = paged ? 2 : 1;
  head_stride_ = meta.stride(head_dimension);
  heads_ = meta.size(head_dimension);
  dim_ = meta.size(head_dimension + 1);
}

KvView::KvView(const KvPool& pool, const TensorMeta& meta)
    : KvView(pool.base(), pool.before_bytes(), pool.span_bytes(), meta) {}

KvView::KvView(const GuardedBuffer& buffer, const TensorMeta& meta)
    : KvView(buffer.data(), 0, static_cast<std::int64_t>(buffer.size()), meta) {}

std::int64_t KvView::offset(std::int64_t page, std::int64_t in_page) const {
  // Unsigned, so that page ids no pool can have stay defined.
  const auto times = [](std::int64_t a, std::int64_t b) {
    return static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b);
  };
  const std::uint64_t elements = times(page, page_stride_) + times(in_page, slot_stride_);
  const auto signed_elements = static_cast<std::int64_t>(elements);
  // Far outside already: the multiplication below must not wrap back in.
  if (signed_elements > span_) return span_;
  if (signed_elements < -before_) return -before_ - row_bytes();
  return signed_elements * element_bytes_;
}

std::int64_t KvView::span_of_32_bits() const {
  return static_cast<std::int64_t>(static_cast<std::uint32_t>(span_ / element_bytes_)) *
         element_bytes_;
}

std::int64_t KvView::wrapped(std::int64_t page, std::int64_t in_page, const WrapModel& wrap) const {
  const std::int64_t at = offset(page, in_page);
  if (wrap.step == WrapStep::none || at < -before_ || at >= span_) return at;
  return wrapped_bytes(wrap, page * page_stride_, in_page * slot_stride_, 0, element_bytes_);
}

bool KvView::reads_zero(std::int64_t page, std::int64_t in_page, const WrapModel& wrap) const {
  return wrapped(page, in_page, wrap) == no_bytes;
}

const std::byte* KvView::row(std::int64_t page, std::int64_t in_page, const WrapModel& wrap) const {
  const std::int64_t at = wrapped(page, in_page, wrap);
  if (at == no_bytes) return nullptr;
  const std::int64_t end = at + (heads_ - 1) * head_stride_bytes() + row_bytes();
  return at < -before_ || end > span_ ? nullptr : base_ + at;
}

}  // namespace attest
