#include "backends/amx/shared_packs.hpp"

namespace attest::amx {

SharedPacks::SharedPacks(const BlockShape& shape, std::int64_t blocks)
    : memory_(nullptr, std::free), state_(static_cast<std::size_t>(blocks)) {
  if (blocks == 0) return;
  const std::size_t each = (KeyPack::bytes_of(shape) + 63) / 64 * 64;
  memory_ = raw_tile_memory(each * static_cast<std::size_t>(blocks));
  packs_.reserve(state_.size());
  for (std::size_t i = 0; i < state_.size(); ++i) {
    packs_.emplace_back(shape, memory_.get() + i * each);
  }
}

}  // namespace attest::amx
