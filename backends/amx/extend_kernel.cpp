#include <algorithm>
#include <atomic>
#include <vector>

#include "backends/amx/kernels.hpp"
#include "backends/amx/parallel.hpp"

namespace attest::amx {
namespace {

/// One (request, kv head, block of packed rows).
struct Item {
  std::int64_t request, kv_head, first_row;
};

class ExtendWorker {
 public:
  explicit ExtendWorker(const ExtendArguments& args)
      : args_(args), group_(args.num_q_heads / args.num_kv_heads), block_(args.shape) {}

  void run(const Item& item) {
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
    for (std::int64_t key = first_key_; key < last_key_; key += keys_per_block) attend(key);
    write_rows();
  }

 private:
  std::int64_t token_of(int r) const { return (item_.first_row + r) / group_; }
  std::int64_t head_of(int r) const {
    return item_.kv_head * group_ + (item_.first_row + r) % group_;
  }
  std::int64_t q_row(int r) const { return args_.extend_start_loc[item_.request] + token_of(r); }

  void begin_rows() {
    const Bf16* q[rows_per_block];
    const std::int64_t left = new_tokens_ * group_ - item_.first_row;
    rows_ = static_cast<int>(std::min<std::int64_t>(left, rows_per_block));
    first_key_ = prefix_ + new_tokens_;
    last_key_ = 0;
    for (int r = 0; r < rows_; ++r) {
      q[r] = args_.q.at(q_row(r), head_of(r));
      const std::int64_t token = token_of(r);
      if (args_.cross_attention) {
        first_[r] = 0;
        last_[r] = prefix_;
      } else {
        // A tree mask may show any new key, so the block walks all of them.
        last_[r] = args_.tree_mask != nullptr ? prefix_ + new_tokens_ : prefix_ + token + 1;
        first_[r] = args_.window > 0 ? std::max<std::int64_t>(0, last_[r] - args_.window) : 0;
      }
      first_key_ = std::min(first_key_, first_[r]);
      last_key_ = std::max(last_key_, last_[r]);
    }
    block_.begin(rows_, q);
  }

  void attend(std::int64_t first_key) {
    KeyBlock keys;
    keys.count = static_cast<int>(std::min<std::int64_t>(keys_per_block, last_key_ - first_key));
    const std::int64_t columns = args_.req_to_token_columns;
    const std::int64_t table = args_.req_pool_indices[item_.request] * columns + first_column_;
    for (int j = 0; j < keys.count; ++j) {
      const std::int64_t key = first_key + j;
      if (key < prefix_) {
        const std::int64_t slot = args_.req_to_token[table + key];
        keys.k[j] = args_.k_pool.at(slot, item_.kv_head);
        keys.v[j] = args_.v_pool.at(slot, item_.kv_head);
      } else {
        const std::int64_t row = args_.extend_start_loc[item_.request] + key - prefix_;
        keys.k[j] = args_.k_new.at(row, item_.kv_head);
        keys.v[j] = args_.v_new.at(row, item_.kv_head);
      }
    }
    block_.attend(keys, visibility(first_key, keys.count));
  }

  Visibility visibility(std::int64_t first_key, int count) {
    Visibility visible{};
    const auto in_block = [&](std::int64_t key) {
      return static_cast<std::int32_t>(std::clamp<std::int64_t>(key - first_key, 0, count));
    };
    for (int r = 0; r < rows_; ++r) {
      visible.first[r] = in_block(first_[r]);
      visible.last[r] = in_block(last_[r]);
    }
    if (args_.tree_mask != nullptr && first_key + count > prefix_) {
      fill_mask(first_key, count);
      visible.mask = mask_;
    }
    return visible;
  }

  void fill_mask(std::int64_t first_key, int count) {
    const std::int64_t side = args_.max_len;
    const std::uint8_t* const mine = args_.tree_mask + item_.request * side * side;
    for (int j = 0; j < count; ++j) {
      const std::int64_t token_key = first_key + j - prefix_;
      for (int r = 0; r < rows_per_block; ++r) {
        const bool shown =
            r < rows_ && (token_key < 0 || mine[token_of(r) * side + token_key] != 0);
        mask_[j * rows_per_block + r] = shown ? 1 : 0;
      }
    }
  }

  void write_rows() {
    const auto dim = static_cast<std::int64_t>(args_.shape.v_head_dim);
    for (int r = 0; r < rows_; ++r) {
      const std::int64_t head = head_of(r);
      const float* const sink = args_.sinks != nullptr ? args_.sinks + head : nullptr;
      write_row(block_.maximum(r), block_.denominator(r), block_.sums(r), args_.shape.v_head_dim,
                sink, args_.out + (q_row(r) * args_.num_q_heads + head) * dim);
    }
  }

  const ExtendArguments& args_;
  const std::int64_t group_;
  RowBlock block_;
  Item item_{};
  int rows_ = 0;
  std::int64_t new_tokens_ = 0, prefix_ = 0, first_column_ = 0;
  std::int64_t first_key_ = 0, last_key_ = 0;
  std::int64_t first_[rows_per_block] = {}, last_[rows_per_block] = {};
  std::uint8_t mask_[keys_per_block * rows_per_block] = {};
};

std::vector<Item> items_of(const ExtendArguments& args) {
  std::vector<Item> items;
  const std::int64_t group = args.num_q_heads / args.num_kv_heads;
  for (std::int64_t i = 0; i < args.batch; ++i) {
    for (std::int64_t h = 0; h < args.num_kv_heads; ++h) {
      const std::int64_t rows = args.extend_seq_lens[i] * group;
      for (std::int64_t row = 0; row < rows; row += rows_per_block) items.push_back({i, h, row});
    }
  }
  return items;
}

}  // namespace

KernelOutcome extend(const ExtendArguments& args) {
  const std::vector<Item> items = items_of(args);
  std::atomic<std::size_t> next{0};
  // Scratch is made before the tiles run: an instruction that raises leaves by longjmp.
  std::vector<ExtendWorker> workers;
  workers.reserve(static_cast<std::size_t>(args.threads));
  for (int t = 0; t < args.threads; ++t) workers.emplace_back(args);
  return on_tiles(args.threads, [&](int worker) {
    ExtendWorker& mine = workers[static_cast<std::size_t>(worker)];
    for (std::size_t n = next++; n < items.size(); n = next++) mine.run(items[n]);
  });
}

}  // namespace attest::amx
