#include "backends/scalar/tile.hpp"

#include <algorithm>

#include "backends/scalar/elements.hpp"

namespace attest {

void Tile::load(const Operands& op, const RowGroup& group, std::int64_t kv_head,
                std::int64_t first_key, std::int64_t key_count) {
  first = first_key;
  count = key_count;
  const std::int64_t v_stride = padded(op.v_head_dim);
  k.assign(static_cast<std::size_t>(op.head_dim * tile_keys), 0.0F);
  v.assign(static_cast<std::size_t>(tile_keys * v_stride), 0.0F);
  row_.resize(static_cast<std::size_t>(op.head_dim));
  const std::int64_t v_head =
      op.fault == Fault::v_of_neighbour_head ? (kv_head + 1) % op.num_kv_heads : kv_head;
  const std::int64_t k_head = op.fault == Fault::k_head_stride_zero ? 0 : kv_head;
  for (std::int64_t t = 0; t < count; ++t) {
    const KeyRow& key = group.keys[static_cast<std::size_t>(first + t)];
    absent[static_cast<std::size_t>(t)] = key.absent;
    const KeySource& source = key.fresh ? op.fresh : op.pool;
    if (key.v) {
      widen(source.v_dtype, key.v + v_head * source.v_head_bytes, op.v_head_dim,
            v.data() + t * v_stride);
    }
    if (!key.k) continue;
    widen(source.k_dtype, key.k + k_head * source.k_head_bytes, op.head_dim, row_.data());
    for (std::int64_t d = 0; d < op.head_dim; ++d) {
      k[static_cast<std::size_t>(d * tile_keys + t)] = row_[static_cast<std::size_t>(d)];
    }
  }
}

}  // namespace attest
