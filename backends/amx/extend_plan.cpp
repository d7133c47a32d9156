#include "backends/amx/extend_plan.hpp"

#include <algorithm>

namespace attest::amx {
namespace {

/// Rows of one kv head that are computed at all.
std::int64_t packed_rows(const ExtendArguments& args, std::int64_t request) {
  std::int64_t tokens = args.extend_seq_lens[request];
  if (args.shape.defect == Defect::rows_past_max_len_skipped) {
    tokens = std::min(tokens, (args.max_len + 31) / 32 * 32);
  }
  return tokens * (args.num_q_heads / args.num_kv_heads);
}

/// Small enough that every thread gets several; what a row computes does not depend on it.
std::int64_t rows_per_item(const ExtendArguments& args) {
  std::int64_t blocks = 0;
  for (std::int64_t i = 0; i < args.batch; ++i) {
    blocks += (packed_rows(args, i) + rows_per_block - 1) / rows_per_block * args.num_kv_heads;
  }
  return std::clamp<std::int64_t>(blocks / (std::int64_t{4} * args.threads), 1,
                                  max_blocks_per_item) *
         rows_per_block;
}

/// Memory that packed blocks may take in one launch.
constexpr std::size_t most_shared = std::size_t{256} << 20;

/// Blocks of one (request, kv head) if they are to be shared, else 0. A windowed request's old keys
/// may be gone, so only the keys of the item at hand may be read there.
std::int64_t shared_blocks(const ExtendArguments& args, std::int64_t request, std::int64_t rows,
                           std::int64_t rows_an_item) {
  if (args.window > 0 || args.cross_attention || rows <= rows_an_item) return 0;
  return (args.seq_lens[request] + keys_per_block - 1) / keys_per_block;
}

}  // namespace

ExtendPlan plan_of(const ExtendArguments& args) {
  ExtendPlan plan;
  const std::size_t block_bytes = KeyPack::bytes_of(args.shape);
  const std::int64_t group = args.num_q_heads / args.num_kv_heads;
  const std::int64_t most = rows_per_item(args);
  plan.row_blocks = most / rows_per_block;
  for (std::int64_t i = 0; i < args.batch; ++i) {
    const std::int64_t all = packed_rows(args, i);
    const std::int64_t prefix = args.seq_lens[i] - args.extend_seq_lens[i];
    std::int64_t blocks = shared_blocks(args, i, all, most);
    const auto with_these =
        static_cast<std::size_t>(plan.shared_blocks + blocks * args.num_kv_heads);
    if (with_these * block_bytes > most_shared) blocks = 0;
    for (std::int64_t row = 0; row < all; row += most) {
      const std::int64_t rows = std::min(most, all - row);
      std::int64_t keys = prefix + (row + rows) / group + 1;
      if (args.window > 0) keys = std::min(keys, args.window + rows / group);
      const bool one_head = args.shape.defect == Defect::packs_shared_across_heads;
      for (std::int64_t h = 0; h < args.num_kv_heads; ++h) {
        const std::int64_t shared = plan.shared_blocks + (one_head ? 0 : h * blocks);
        plan.items.push_back({i, h, row, rows, keys * rows, blocks > 0 ? shared : -1});
      }
    }
    plan.shared_blocks += blocks * args.num_kv_heads;
  }
  std::sort(plan.items.begin(), plan.items.end(),
            [](const ExtendItem& a, const ExtendItem& b) { return a.cost > b.cost; });
  return plan;
}

}  // namespace attest::amx
