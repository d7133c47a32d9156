#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "backends/amx/key_pack.hpp"

namespace attest::amx {

/// The packed key blocks of some (request, kv head) pairs that several work items walk: whoever
/// comes to a block first packs it, the others wait for it. Packing runs no tile instruction, so
/// nobody leaves in the middle of it.
class SharedPacks {
 public:
  /// Room for `blocks` blocks; nothing where there are none. \throws std::bad_alloc
  SharedPacks(const BlockShape& shape, std::int64_t blocks);

  /// Block `index`, filled by `load(KeyBlock&)` where nobody has yet.
  template <class Load>
  const KeyPack& get(std::int64_t index, Load&& load) {
    const auto i = static_cast<std::size_t>(index);
    int state = state_[i].load(std::memory_order_acquire);
    if (state == empty && state_[i].compare_exchange_strong(state, packing)) {
      KeyBlock keys;
      load(keys);
      packs_[i].pack(keys, KeyRows::copied);
      state_[i].store(ready, std::memory_order_release);
    }
    while (state_[i].load(std::memory_order_acquire) != ready) __builtin_ia32_pause();
    return packs_[i];
  }

  /// Brings block `index` near if it is ready.
  void prefetch(std::int64_t index) const {
    const auto i = static_cast<std::size_t>(index);
    if (state_[i].load(std::memory_order_acquire) == ready) packs_[i].prefetch();
  }

 private:
  static constexpr int empty = 0, packing = 1, ready = 2;
  TileMemory memory_;
  std::vector<KeyPack> packs_;
  std::vector<std::atomic<int>> state_;
};

}  // namespace attest::amx
