#include <algorithm>
#include <array>
#include <new>

#include "memory/pool_memory.hpp"

namespace attest {
namespace {

constexpr std::int64_t base_alignment = 4096;

std::int64_t round_up(std::int64_t value, std::int64_t step) {
  return (value + step - 1) / step * step;
}

class DenseMemory final : public KvMemory {
 public:
  explicit DenseMemory(const PoolRequest& request)
      : margin_(round_up(std::max(request.margin_bytes, base_alignment), base_alignment)),
        all_({ByteRange{-margin_, request.span_bytes + margin_}}) {
    const auto bytes = static_cast<std::size_t>(all_[0].end - all_[0].begin);
    block_ = static_cast<std::byte*>(
        ::operator new(bytes, std::align_val_t{static_cast<std::size_t>(base_alignment)}));
    const std::span<std::byte> block(block_, bytes);
    const auto margin = static_cast<std::size_t>(margin_);
    const auto span = static_cast<std::size_t>(request.span_bytes);
    const auto fill = [&](std::span<std::byte> part, Region region) {
      fill_poison(part, request.dtype, request.poison, region);
    };
    fill(block.first(margin), Region::before_base);
    fill(block.subspan(margin, span), Region::unreferenced);
    fill(block.subspan(margin + span), Region::past_end);
  }
  ~DenseMemory() override {
    ::operator delete(block_, std::align_val_t{static_cast<std::size_t>(base_alignment)});
  }
  DenseMemory(const DenseMemory&) = delete;
  DenseMemory& operator=(const DenseMemory&) = delete;

  std::byte* base() const override { return block_ + margin_; }
  std::int64_t before_bytes() const override { return margin_; }
  std::int64_t after_bytes() const override { return margin_; }
  bool sparse() const override { return false; }
  std::span<const ByteRange> writable() const override { return all_; }

 private:
  std::int64_t margin_;
  std::array<ByteRange, 1> all_;
  std::byte* block_ = nullptr;
};

}  // namespace

std::unique_ptr<KvMemory> make_dense_memory(const PoolRequest& request) {
  return std::make_unique<DenseMemory>(request);
}

}  // namespace attest
