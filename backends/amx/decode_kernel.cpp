#include <algorithm>
#include <array>
#include <atomic>
#include <limits>
#include <vector>

#include "backends/amx/kernels.hpp"
#include "backends/amx/parallel.hpp"

namespace attest::amx {
namespace {

/// Keys [first, last) of a request, counted from the first text token (or encoder token in cross
/// attention), which lies at column `origin` of its req_to_token row.
struct Range {
  std::int64_t origin, first, last;
};

/// One (request, kv head, run of its q heads, split).
struct Item {
  std::int64_t request, kv_head, first_head, heads, split;
  Range keys;
  std::int64_t group;  ///< index of the items that differ only in their split
};

/// Unmerged result of one (request, q head, split).
struct Partial {
  float maximum = -std::numeric_limits<float>::infinity();
  float denominator = 0;
};

Range keys_of(const DecodeArguments& args, std::int64_t request) {
  Range range{0, 0, args.seq_lens[request]};
  const std::int64_t encoder = args.encoder_lens != nullptr ? args.encoder_lens[request] : 0;
  if (args.cross_attention) {
    if (args.encoder_lens != nullptr) range.last = encoder;
    return range;
  }
  range.origin = encoder;
  if (args.window > 0) {
    range.first = std::max<std::int64_t>(0, range.last - args.window);
    if (args.shape.defect == Defect::window_overwrites_encoder) range.origin = 0;
  }
  return range;
}

/// The part of `range` that split `split` of `splits` covers: whole blocks of 64 keys, the same
/// number in each.
Range part_of(const Range& range, std::int64_t split, std::int64_t splits) {
  const std::int64_t start = block_start(range.first);
  const std::int64_t blocks = (range.last - start + keys_per_block - 1) / keys_per_block;
  const std::int64_t per_split = (blocks + splits - 1) / splits * keys_per_block;
  const auto edge = [&](std::int64_t s) {
    return std::clamp(start + s * per_split, range.first, range.last);
  };
  return {range.origin, edge(split), edge(split + 1)};
}

class DecodeWork {
 public:
  explicit DecodeWork(const DecodeArguments& args)
      : args_(args),
        group_(args.num_q_heads / args.num_kv_heads),
        dim_(static_cast<std::size_t>(padded(args.shape.v_head_dim))),
        partials_(static_cast<std::size_t>(args.batch * args.num_q_heads * args.splits)),
        sums_(partials_.size() * dim_) {
    constexpr std::int64_t most = std::int64_t{max_blocks_per_item} * rows_per_block;
    std::int64_t groups = 0;
    for (std::int64_t i = 0; i < args.batch; ++i) {
      const Range keys = keys_of(args, i);
      for (std::int64_t h = 0; h < args.num_kv_heads; ++h) {
        for (std::int64_t g = 0; g < group_; g += most, ++groups) {
          for (std::int64_t s = 0; s < args.splits; ++s) {
            items_.push_back(
                {i, h, g, std::min(most, group_ - g), s, part_of(keys, s, args.splits), groups});
          }
        }
      }
    }
    std::sort(items_.begin(), items_.end(), [](const Item& a, const Item& b) {
      return a.keys.last - a.keys.first > b.keys.last - b.keys.first;
    });
    left_ = std::vector<std::atomic<std::int64_t>>(static_cast<std::size_t>(groups));
    for (auto& left : left_) left = args.splits;
  }

  const DecodeArguments& args() const { return args_; }
  std::int64_t group() const { return group_; }
  const std::vector<Item>& items() const { return items_; }

  /// Takes what one row of the item came to; after the item's last row, done() merges.
  void put(const Item& item, std::int64_t head, const RowBlock& block, int r) {
    const std::size_t at = index(item.request, head, item.split);
    partials_[at] = {block.maximum(r), block.denominator(r)};
    std::copy_n(block.sums(r), args_.shape.v_head_dim,
                sums_.begin() + static_cast<std::ptrdiff_t>(at * dim_));
  }

  void done(const Item& item) {
    if (--left_[static_cast<std::size_t>(item.group)] > 0) return;
    for (std::int64_t h = 0; h < item.heads; ++h) {
      merge_row(item.request, item.kv_head * group_ + item.first_head + h);
    }
  }

 private:
  std::size_t index(std::int64_t request, std::int64_t head, std::int64_t split) const {
    return static_cast<std::size_t>((request * args_.num_q_heads + head) * args_.splits + split);
  }

  void merge_row(std::int64_t request, std::int64_t head) {
    const std::size_t first = index(request, head, 0);
    Partial total = partials_[first];
    float* const sums = sums_.data() + first * dim_;
    for (std::size_t s = 1; s < static_cast<std::size_t>(args_.splits); ++s) {
      const Partial& part = partials_[first + s];
      merge(total.maximum, total.denominator, sums, part.maximum, part.denominator,
            sums_.data() + (first + s) * dim_, args_.shape.v_head_dim);
    }
    const bool in_group = args_.shape.defect == Defect::sink_of_the_head_in_its_group;
    const std::int64_t sink_head = in_group ? head % group_ : head;
    const float* const sink = args_.sinks != nullptr ? args_.sinks + sink_head : nullptr;
    Bf16* const out = args_.out + (request * args_.num_q_heads + head) *
                                      static_cast<std::int64_t>(args_.shape.v_head_dim);
    write_row(total.maximum, total.denominator, sums, args_.shape.v_head_dim, sink, out);
  }

  const DecodeArguments& args_;
  const std::int64_t group_;
  const std::size_t dim_;
  std::vector<Item> items_;
  std::vector<Partial> partials_;
  std::vector<float> sums_;
  std::vector<std::atomic<std::int64_t>> left_;
};

class DecodeWorker {
 public:
  explicit DecodeWorker(DecodeWork& work) : work_(work), args_(work.args()), pack_(args_.shape) {
    const std::int64_t blocks = (work.group() + rows_per_block - 1) / rows_per_block;
    for (std::int64_t b = 0; b < std::min<std::int64_t>(blocks, max_blocks_per_item); ++b) {
      blocks_.emplace_back(args_.shape);
    }
  }

  void run(const Item& item) {
    const std::int64_t head = item.kv_head * work_.group() + item.first_head;
    std::array<Looking, max_blocks_per_item> looking;
    std::size_t n = 0;
    for (std::int64_t first = 0; first < item.heads; first += rows_per_block, ++n) {
      const Bf16* q[rows_per_block];
      const auto rows =
          static_cast<int>(std::min<std::int64_t>(item.heads - first, rows_per_block));
      for (int r = 0; r < rows; ++r) q[r] = args_.q.at(item.request, head + first + r);
      blocks_[n].begin(rows, q);
      looking[n] = {&blocks_[n], &all_};
    }
    walk_keys(item, std::span(looking.data(), n));
    for (std::size_t b = 0; b < n; ++b) {
      for (int r = 0; r < blocks_[b].rows(); ++r) {
        work_.put(item, head + static_cast<std::int64_t>(b) * rows_per_block + r, blocks_[b], r);
      }
    }
    work_.done(item);
  }

 private:
  void walk_keys(const Item& item, std::span<const Looking> looking) {
    if (item.keys.first >= item.keys.last) return;
    KeyBlock keys[2];
    std::int64_t start = block_start(item.keys.first);
    load(item, start, keys[0]);
    for (int at = 0; start < item.keys.last; at = 1 - at, start += keys_per_block) {
      if (start + keys_per_block < item.keys.last) {
        load(item, start + keys_per_block, keys[1 - at]);
        keys[1 - at].prefetch(args_.shape);
      }
      pack_.pack(keys[at], looking.size() > 1 ? KeyRows::copied : KeyRows::in_place);
      see(keys[at]);
      attend(pack_, looking);
    }
  }

  void load(const Item& item, std::int64_t start, KeyBlock& keys) const {
    keys.first = static_cast<int>(std::max<std::int64_t>(0, item.keys.first - start));
    keys.last = static_cast<int>(std::min<std::int64_t>(keys_per_block, item.keys.last - start));
    const std::int64_t table =
        args_.req_pool_indices[item.request] * args_.req_to_token_columns + item.keys.origin;
    for (int j = keys.first; j < keys.last; ++j) {
      const std::int64_t slot = args_.req_to_token[table + start + j];
      keys.k[j] = args_.k_at(slot, item.kv_head);
      keys.v[j] = args_.v_at(slot, item.kv_head);
    }
  }

  /// Every row sees every key that is there.
  void see(const KeyBlock& keys) {
    const bool edge = args_.shape.defect != Defect::window_edge_not_hidden;
    all_.everything = keys.first == 0 || !edge;
    for (int r = 0; r < rows_per_block; ++r) {
      all_.first[r] = keys.first;
      all_.last[r] = keys.last;
    }
  }

  DecodeWork& work_;
  const DecodeArguments& args_;
  KeyPack pack_;
  std::vector<RowBlock> blocks_;
  Visibility all_{};
};

}  // namespace

KernelOutcome decode(const DecodeArguments& args) {
  DecodeWork work(args);
  std::vector<DecodeWorker> workers;
  workers.reserve(static_cast<std::size_t>(args.threads));
  for (int t = 0; t < args.threads; ++t) workers.emplace_back(work);
  std::atomic<std::size_t> next{0};
  return on_tiles(args.threads, [&](int worker) {
    DecodeWorker& mine = workers[static_cast<std::size_t>(worker)];
    for (std::size_t n = next++; n < work.items().size(); n = next++) mine.run(work.items()[n]);
  });
}

}  // namespace attest::amx
