#include <algorithm>
#include <array>
#include <atomic>
#include <vector>

#include "backends/amx/extend_plan.hpp"
#include "backends/amx/kernels.hpp"
#include "backends/amx/parallel.hpp"
#include "backends/amx/shared_packs.hpp"

namespace attest::amx {
namespace {

/// Up to 32 packed rows and the keys [first, last) that each of them may see.
struct BlockRows {
  int count = 0;
  std::int64_t first_row = 0;
  std::int64_t first[rows_per_block] = {}, last[rows_per_block] = {};
  std::int64_t lowest_first = 0, highest_first = 0, lowest_last = 0, highest_last = 0;
};

class ExtendWorker {
 public:
  ExtendWorker(const ExtendArguments& args, SharedPacks& shared, std::int64_t blocks)
      : args_(args),
        shared_(shared),
        group_(args.num_q_heads / args.num_kv_heads),
        pack_(args.shape) {
    blocks_.reserve(static_cast<std::size_t>(blocks));
    for (std::int64_t b = 0; b < blocks; ++b) blocks_.emplace_back(args.shape);
  }

  void run(const ExtendItem& item) {
    item_ = item;
    const std::int64_t i = item.request;
    new_tokens_ = args_.extend_seq_lens[i];
    first_column_ =
        args_.encoder_lens != nullptr && !args_.cross_attention ? args_.encoder_lens[i] : 0;
    prefix_ = args_.seq_lens[i] - new_tokens_;
    if (args_.cross_attention) {
      prefix_ = args_.encoder_lens != nullptr ? args_.encoder_lens[i] : args_.seq_lens[i];
    }
    begin_rows();
    walk_keys();
    for (int b = 0; b < num_blocks_; ++b) write_rows(b);
  }

 private:
  std::int64_t token_of(std::int64_t row) const { return row / group_; }
  std::int64_t head_of(std::int64_t row) const { return item_.kv_head * group_ + row % group_; }
  std::int64_t q_row(std::int64_t row) const {
    return args_.extend_start_loc[item_.request] + token_of(row);
  }

  void begin_rows() {
    num_blocks_ = 0;
    first_key_ = prefix_ + new_tokens_;
    last_key_ = 0;
    for (std::int64_t row = 0; row < item_.rows; row += rows_per_block) {
      BlockRows& rows = rows_[static_cast<std::size_t>(num_blocks_)];
      rows.first_row = item_.first_row + row;
      rows.count = static_cast<int>(std::min<std::int64_t>(item_.rows - row, rows_per_block));
      const Bf16* q[rows_per_block];
      for (int r = 0; r < rows.count; ++r) {
        q[r] = args_.q.at(q_row(rows.first_row + r), head_of(rows.first_row + r));
        set_range(rows, r);
      }
      const auto [low_first, high_first] = std::minmax_element(rows.first, rows.first + rows.count);
      const auto [low_last, high_last] = std::minmax_element(rows.last, rows.last + rows.count);
      rows.lowest_first = *low_first;
      rows.highest_first = *high_first;
      rows.lowest_last = *low_last;
      rows.highest_last = *high_last;
      first_key_ = std::min(first_key_, rows.lowest_first);
      last_key_ = std::max(last_key_, rows.highest_last);
      blocks_[static_cast<std::size_t>(num_blocks_++)].begin(rows.count, q);
    }
  }

  void set_range(BlockRows& rows, int r) const {
    std::int64_t token = token_of(rows.first_row + r);
    if (args_.shape.defect == Defect::row_ends_in_another_order) {
      token = (rows.first_row + r) % new_tokens_;  // as if rows were packed head by head
    }
    if (args_.cross_attention) {
      rows.first[r] = 0;
      rows.last[r] = prefix_;
      return;
    }
    // A tree mask may show any new key, so the block walks all of them.
    rows.last[r] = args_.tree_mask != nullptr ? prefix_ + new_tokens_ : prefix_ + token + 1;
    if (args_.shape.defect == Defect::mask_cut_at_the_row_block) {
      const std::int64_t row_block = token / rows_per_block * rows_per_block;
      rows.last[r] = std::min(rows.last[r], prefix_ + row_block + rows_per_block);
    }
    rows.first[r] = args_.window > 0 ? std::max<std::int64_t>(0, rows.last[r] - args_.window) : 0;
  }

  /// Blocks that other items walk too are packed once, whole, whatever part of them this one sees.
  void walk_shared() {
    for (std::int64_t start = 0; start < last_key_; start += keys_per_block) {
      const std::int64_t block = item_.shared_blocks + start / keys_per_block;
      if (start + keys_per_block < last_key_) shared_.prefetch(block + 1);
      const KeyPack& pack =
          shared_.get(block, [&](KeyBlock& keys) { load(start, 0, prefix_ + new_tokens_, keys); });
      look(pack, start);
    }
  }

  /// One pass over the key blocks: the next one's rows are fetched while this one is computed.
  void walk_keys() {
    if (first_key_ >= last_key_) return;
    if (item_.shared_blocks >= 0) return walk_shared();
    KeyBlock keys[2];
    std::int64_t start = block_start(first_key_);
    load(start, first_key_, last_key_, keys[0]);
    for (int at = 0; start < last_key_; at = 1 - at, start += keys_per_block) {
      if (start + keys_per_block < last_key_) {
        load(start + keys_per_block, first_key_, last_key_, keys[1 - at]);
        keys[1 - at].prefetch(args_.shape);
      }
      pack_.pack(keys[at], num_blocks_ > 1 ? KeyRows::copied : KeyRows::in_place);
      look(pack_, start);
    }
  }

  /// The part of the block at `start` that lies in [first, last).
  void load(std::int64_t start, std::int64_t first, std::int64_t last, KeyBlock& keys) const {
    keys.first = static_cast<int>(std::max<std::int64_t>(0, first - start));
    keys.last = static_cast<int>(std::min<std::int64_t>(keys_per_block, last - start));
    const std::int64_t table =
        args_.req_pool_indices[item_.request] * args_.req_to_token_columns + first_column_;
    for (int j = keys.first; j < keys.last; ++j) {
      const std::int64_t key = start + j;
      if (key < prefix_) {
        const std::int64_t slot = args_.req_to_token[table + key];
        keys.k[j] = args_.k_at(slot, item_.kv_head);
        keys.v[j] = args_.v_at(slot, item_.kv_head);
      } else {
        const std::int64_t row = args_.extend_start_loc[item_.request] + key - prefix_;
        keys.k[j] = args_.k_new.at(row, item_.kv_head);
        keys.v[j] = args_.v_new.at(row, item_.kv_head);
      }
    }
  }

  void look(const KeyPack& pack, std::int64_t start) {
    const int count = pack.keys();
    std::array<Looking, max_blocks_per_item> looking;
    std::size_t n = 0;
    for (int b = 0; b < num_blocks_; ++b) {
      const BlockRows& rows = rows_[static_cast<std::size_t>(b)];
      if (rows.highest_last <= start || rows.lowest_first >= start + count) continue;
      Visibility& visible = visible_[static_cast<std::size_t>(b)];
      see(rows, start, count, b, visible);
      looking[n++] = {&blocks_[static_cast<std::size_t>(b)], &visible};
    }
    attend(pack, std::span(looking.data(), n));
  }

  void see(const BlockRows& rows, std::int64_t start, int count, int b, Visibility& visible) {
    const bool drafts = args_.tree_mask != nullptr && start + count > prefix_;
    visible.everything =
        !drafts && rows.highest_first <= start && rows.lowest_last >= start + count;
    if (visible.everything) return;
    const auto in_block = [&](std::int64_t key) {
      return static_cast<std::int32_t>(std::clamp<std::int64_t>(key - start, 0, count));
    };
    for (int r = 0; r < rows_per_block; ++r) {
      visible.first[r] = r < rows.count ? in_block(rows.first[r]) : 0;
      visible.last[r] = r < rows.count ? in_block(rows.last[r]) : 0;
    }
    visible.mask = nullptr;
    if (!drafts) return;
    auto& mask = masks_[static_cast<std::size_t>(b)];
    fill_mask(rows, start, count, mask.data());
    visible.mask = mask.data();
  }

  std::int64_t mask_row(std::int64_t row) const {
    if (args_.shape.defect == Defect::mask_row_is_the_packed_row) return row % args_.max_len;
    return token_of(row);
  }

  void fill_mask(const BlockRows& rows, std::int64_t start, int count, std::uint8_t* mask) const {
    const std::int64_t side = args_.max_len;
    const std::uint8_t* const mine = args_.tree_mask + item_.request * side * side;
    for (int j = 0; j < count; ++j) {
      const std::int64_t token_key = start + j - prefix_;
      for (int r = 0; r < rows_per_block; ++r) {
        const std::int64_t row = mask_row(rows.first_row + r);
        const bool shown = r < rows.count && (token_key < 0 || mine[row * side + token_key] != 0);
        mask[j * rows_per_block + r] = shown ? 1 : 0;
      }
    }
  }

  void write_rows(int b) {
    const auto dim = static_cast<std::int64_t>(args_.shape.v_head_dim);
    const BlockRows& rows = rows_[static_cast<std::size_t>(b)];
    const RowBlock& block = blocks_[static_cast<std::size_t>(b)];
    for (int r = 0; r < rows.count; ++r) {
      const std::int64_t head = head_of(rows.first_row + r);
      const bool in_group = args_.shape.defect == Defect::sink_of_the_head_in_its_group;
      const std::int64_t sink_head = in_group ? head % group_ : head;
      const float* const sink = args_.sinks != nullptr ? args_.sinks + sink_head : nullptr;
      write_row(block.maximum(r), block.denominator(r), block.sums(r), args_.shape.v_head_dim, sink,
                args_.out + (q_row(rows.first_row + r) * args_.num_q_heads + head) * dim);
    }
  }

  const ExtendArguments& args_;
  SharedPacks& shared_;
  const std::int64_t group_;
  KeyPack pack_;
  std::vector<RowBlock> blocks_;
  std::array<BlockRows, max_blocks_per_item> rows_;
  std::array<Visibility, max_blocks_per_item> visible_;
  std::array<std::array<std::uint8_t, std::size_t{keys_per_block} * rows_per_block>,
             max_blocks_per_item>
      masks_{};
  ExtendItem item_{};
  int num_blocks_ = 0;
  std::int64_t new_tokens_ = 0, prefix_ = 0, first_column_ = 0;
  std::int64_t first_key_ = 0, last_key_ = 0;
};

}  // namespace

KernelOutcome extend(const ExtendArguments& given) {
  ExtendArguments args = given;
  if (args.shape.defect == Defect::logit_cap_ignored) args.shape.softcap = 0;
  const ExtendPlan plan = plan_of(args);
  SharedPacks shared(args.shape, plan.shared_blocks);
  std::atomic<std::size_t> next{0};
  // Scratch is made before the tiles run: an instruction that raises leaves by longjmp.
  std::vector<ExtendWorker> workers;
  workers.reserve(static_cast<std::size_t>(args.threads));
  for (int t = 0; t < args.threads; ++t) workers.emplace_back(args, shared, plan.row_blocks);
  return on_tiles(args.threads, [&](int worker) {
    ExtendWorker& mine = workers[static_cast<std::size_t>(worker)];
    for (std::size_t n = next++; n < plan.items.size(); n = next++) mine.run(plan.items[n]);
  });
}

}  // namespace attest::amx
