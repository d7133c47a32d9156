#include <algorithm>
#include <atomic>
#include <limits>
#include <vector>

#include "backends/amx/kernels.hpp"
#include "backends/amx/parallel.hpp"

namespace attest::amx {
namespace {

/// One (request, kv head, block of its q heads, split).
struct Item {
  std::int64_t request, kv_head, first_head, split;
};

/// Unmerged result of one (request, q head, split).
struct Partial {
  float maximum = -std::numeric_limits<float>::infinity();
  float denominator = 0;
};

class DecodeWork {
 public:
  explicit DecodeWork(const DecodeArguments& args)
      : args_(args),
        group_(args.num_q_heads / args.num_kv_heads),
        dim_(static_cast<std::size_t>(args.shape.v_head_dim)),
        partials_(static_cast<std::size_t>(args.batch * args.num_q_heads * args.splits)),
        sums_(partials_.size() * dim_) {
    for (std::int64_t i = 0; i < args.batch; ++i) {
      for (std::int64_t h = 0; h < args.num_kv_heads; ++h) {
        for (std::int64_t g = 0; g < group_; g += rows_per_block) {
          for (std::int64_t s = 0; s < args.splits; ++s) items_.push_back({i, h, g, s});
        }
      }
    }
  }

  const std::vector<Item>& items() const { return items_; }

  void attend(const Item& item, RowBlock& block) {
    const Bf16* q[rows_per_block];
    const int rows =
        static_cast<int>(std::min<std::int64_t>(group_ - item.first_head, rows_per_block));
    const std::int64_t head = item.kv_head * group_ + item.first_head;
    for (int r = 0; r < rows; ++r) q[r] = args_.q.at(item.request, head + r);
    block.begin(rows, q);
    const Range range = keys_of(item);
    for (std::int64_t key = range.first; key < range.last; key += keys_per_block) {
      const auto count = std::min<std::int64_t>(keys_per_block, range.last - key);
      attend_keys(item, key, static_cast<int>(count), rows, block);
    }
    for (int r = 0; r < rows; ++r) {
      const std::size_t at = index(item.request, head + r, item.split);
      partials_[at] = {block.maximum(r), block.denominator(r)};
      std::copy_n(block.sums(r), dim_, sums_.begin() + static_cast<std::ptrdiff_t>(at * dim_));
    }
  }

  void merge_rows(std::int64_t i) {
    for (std::int64_t h = 0; h < args_.num_q_heads; ++h) {
      const std::size_t first = index(i, h, 0);
      Partial total = partials_[first];
      float* const sums = sums_.data() + first * dim_;
      for (std::size_t s = 1; s < static_cast<std::size_t>(args_.splits); ++s) {
        const Partial& part = partials_[first + s];
        merge(total.maximum, total.denominator, sums, part.maximum, part.denominator,
              sums_.data() + (first + s) * dim_, args_.shape.v_head_dim);
      }
      const float* const sink = args_.sinks != nullptr ? args_.sinks + h : nullptr;
      Bf16* const out = args_.out + (i * args_.num_q_heads + h) * static_cast<std::int64_t>(dim_);
      write_row(total.maximum, total.denominator, sums, args_.shape.v_head_dim, sink, out);
    }
  }

 private:
  struct Range {
    std::int64_t first, last;
  };

  std::size_t index(std::int64_t request, std::int64_t head, std::int64_t split) const {
    return static_cast<std::size_t>((request * args_.num_q_heads + head) * args_.splits + split);
  }

  /// Columns of req_to_token that the split covers, split lengths a multiple of the key block.
  Range keys_of(const Item& item) const {
    std::int64_t length = args_.seq_lens[item.request];
    std::int64_t start = 0;
    if (args_.cross_attention) {
      if (args_.encoder_lens != nullptr) length = args_.encoder_lens[item.request];
    } else {
      if (args_.encoder_lens != nullptr) start = args_.encoder_lens[item.request];
      if (args_.window > 0 && args_.window < length) {
        start += length - args_.window;
        length = args_.window;
      }
    }
    const std::int64_t blocks = (length + keys_per_block - 1) / keys_per_block;
    const std::int64_t per_split = (blocks + args_.splits - 1) / args_.splits * keys_per_block;
    const std::int64_t first = std::min(length, item.split * per_split);
    return {start + first, start + std::min(length, first + per_split)};
  }

  void attend_keys(const Item& item, std::int64_t first, int count, int rows,
                   RowBlock& block) const {
    KeyBlock keys;
    keys.count = count;
    const std::int64_t table =
        args_.req_pool_indices[item.request] * args_.req_to_token_columns + first;
    for (int j = 0; j < count; ++j) {
      const std::int64_t slot = args_.req_to_token[table + j];
      keys.k[j] = args_.k_pool.at(slot, item.kv_head);
      keys.v[j] = args_.v_pool.at(slot, item.kv_head);
    }
    Visibility visible{};
    for (int r = 0; r < rows; ++r) visible.last[r] = count;
    block.attend(keys, visible);
  }

  const DecodeArguments& args_;
  const std::int64_t group_;
  const std::size_t dim_;
  std::vector<Item> items_;
  std::vector<Partial> partials_;
  std::vector<float> sums_;
};

}  // namespace

KernelOutcome decode(const DecodeArguments& args) {
  DecodeWork work(args);
  std::vector<RowBlock> blocks;
  blocks.reserve(static_cast<std::size_t>(args.threads));
  for (int t = 0; t < args.threads; ++t) blocks.emplace_back(args.shape);
  std::atomic<std::size_t> next{0};
  KernelOutcome outcome = on_tiles(args.threads, [&](int worker) {
    RowBlock& mine = blocks[static_cast<std::size_t>(worker)];
    for (std::size_t n = next++; n < work.items().size(); n = next++) {
      work.attend(work.items()[n], mine);
    }
  });
  if (!outcome.raised) {
    for (std::int64_t i = 0; i < args.batch; ++i) work.merge_rows(i);
  }
  return outcome;
}

}  // namespace attest::amx
