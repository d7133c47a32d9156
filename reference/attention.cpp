#include "reference/attention.hpp"

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>

#include "reference/attention_core.hpp"
#include "reference/expected_writer.hpp"
#include "reference/key_stream.hpp"
#include "reference/parallel.hpp"

namespace attest {
namespace {

// A block of K and V and the scores of a slab against it fit in a second-level cache of 1-2 MiB.
constexpr std::int64_t block_keys = 512;
constexpr std::int64_t packed_rows_per_slab = 256;
// Partial results per task: enough for load balance, few enough that memory does not follow the
// context. The split does not depend on the number of threads, so neither do the bits.
constexpr std::int64_t parts_per_task = 32;
constexpr std::int64_t min_part_keys = 4 * block_keys;
constexpr double flops_worth_a_thread = 1e7;

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// Consecutive rows of one request, computed together.
struct Slab {
  std::vector<std::int64_t> rows;
  KeyStream stream;
};

/// One slab against one kv head. Its parts are merged in order by whoever finishes the last one.
struct Task {
  const Slab* slab = nullptr;
  std::int64_t kv_head = 0;
  std::int64_t part_keys = 0;
  std::vector<std::unique_ptr<PartialAttention>> parts;
  std::atomic<std::int64_t> parts_left = 0;
};

struct Part {
  Task* task = nullptr;
  std::size_t index = 0;
};

class Reference {
 public:
  Reference(const Attended& meaning, const TensorSource& source, const ReferenceOptions& options)
      : meaning_(meaning),
        source_(source),
        model_(source.problem().model),
        envelopes_(options.envelopes),
        k_head_shift_(options.k_head_shift),
        v_head_shift_(options.v_head_shift),
        group_(meaning.num_q_heads / std::max<std::int64_t>(1, meaning.num_kv_heads)),
        writer_(meaning, source, options) {
    make_slabs();
    make_tasks();
  }

  Expected compute(int threads);

 private:
  void make_slabs();
  void make_tasks();
  void make_task(const Slab& slab, std::int64_t kv_head);
  CoreShape shape(const Slab& slab) const;
  void run_part(const Part& part, CoreWorker& worker);
  AlignedVector<double> packed_q(const Task& task) const;
  void fill(const Task& task, StreamInterval block, CoreWorker& worker) const;
  void finish(Task& task);

  const Attended& meaning_;
  const TensorSource& source_;
  const Model& model_;
  bool envelopes_;
  std::int64_t k_head_shift_;
  std::int64_t v_head_shift_;
  std::int64_t group_;  ///< q heads per kv head
  ExpectedWriter writer_;
  std::vector<Slab> slabs_;
  std::vector<std::unique_ptr<Task>> tasks_;
  std::vector<Part> parts_;
  double flops_ = 0;
};

void Reference::make_slabs() {
  const auto most_rows =
      at(std::max<std::int64_t>(1, packed_rows_per_slab / std::max<std::int64_t>(1, group_)));
  std::int64_t request = -1;
  for (std::size_t r = 0; r < meaning_.rows.size(); ++r) {
    const AttendedRow& row = meaning_.rows[r];
    if (!writer_.expected().computed[r] || row.keys.empty()) continue;
    const bool joins = !slabs_.empty() && row.request >= 0 && row.request == request &&
                       slabs_.back().rows.size() < most_rows;
    if (!joins) slabs_.emplace_back();
    slabs_.back().rows.push_back(static_cast<std::int64_t>(r));
    request = row.request;
  }
  for (Slab& slab : slabs_) slab.stream = make_key_stream(meaning_, slab.rows);
}

void Reference::make_tasks() {
  const std::int64_t kv_heads = group_ > 0 ? meaning_.num_kv_heads : 0;
  for (const Slab& slab : slabs_) {
    for (std::int64_t kv_head = 0; kv_head < kv_heads; ++kv_head) make_task(slab, kv_head);
    // Heads that no kv head serves (a call can get that wrong) have no value.
    for (const std::int64_t r : slab.rows) {
      for (std::int64_t h = kv_heads * group_; h < meaning_.num_q_heads; ++h) {
        writer_.put_nan(r, h);
      }
    }
  }
}

void Reference::make_task(const Slab& slab, std::int64_t kv_head) {
  Task& task = *tasks_.emplace_back(std::make_unique<Task>());
  task.slab = &slab;
  task.kv_head = kv_head;
  const std::int64_t keys = slab.stream.length;
  const std::int64_t share = ceil_div(keys, parts_per_task);
  task.part_keys = std::max(min_part_keys, ceil_div(share, block_keys) * block_keys);
  // A slab that sees nothing but unknown slots has no keys, and still a result to write.
  const std::int64_t parts = std::max<std::int64_t>(1, ceil_div(keys, task.part_keys));
  task.parts.resize(at(parts));
  task.parts_left = parts;
  for (std::size_t i = 0; i < task.parts.size(); ++i) parts_.push_back({&task, i});
  flops_ += 2.0 * static_cast<double>(shape(slab).packed()) * static_cast<double>(keys) *
            static_cast<double>(model_.head_dim + model_.v_head_dim);
}

CoreShape Reference::shape(const Slab& slab) const {
  return {.tokens = static_cast<std::int64_t>(slab.rows.size()),
          .group = group_,
          .head_dim = model_.head_dim,
          .v_head_dim = model_.v_head_dim,
          .softcap = meaning_.softcap,
          .envelopes = envelopes_,
          .v_is_in_k = model_.mla};
}

Expected Reference::compute(int threads) {
  const auto useful = static_cast<std::size_t>(1 + flops_ / flops_worth_a_thread);
  std::atomic<std::size_t> next = 0;
  run_on_threads(std::min({thread_count(threads), useful, parts_.size()}), [&] {
    CoreWorker worker;
    for (std::size_t i = next++; i < parts_.size(); i = next++) run_part(parts_[i], worker);
  });
  return std::move(writer_.expected());
}

void Reference::run_part(const Part& part, CoreWorker& worker) {
  Task& task = *part.task;
  const KeyStream& stream = task.slab->stream;
  const CoreShape core = shape(*task.slab);
  auto sums = std::make_unique<PartialAttention>(core);
  const std::int64_t first = static_cast<std::int64_t>(part.index) * task.part_keys;
  const std::int64_t last = std::min(stream.length, first + task.part_keys);
  worker.prepare(core, std::min(block_keys, last - first));
  const AlignedVector<double> q = packed_q(task);
  for (std::int64_t begin = first; begin < last; begin += block_keys) {
    const StreamInterval block{begin, std::min(last, begin + block_keys)};
    fill(task, block, worker);
    worker.absorb(q, begin, block.end - begin, stream.visible, *sums);
  }
  task.parts[part.index] = std::move(sums);
  if (--task.parts_left == 0) finish(task);
}

AlignedVector<double> Reference::packed_q(const Task& task) const {
  const std::size_t d = at(model_.head_dim);
  AlignedVector<double> q(task.slab->rows.size() * at(group_) * d);
  std::span<double> rest(q);
  for (const std::int64_t r : task.slab->rows) {
    for (std::int64_t g = 0; g < group_; ++g, rest = rest.subspan(d)) {
      writer_.scaled_q(r, task.kv_head * group_ + g, rest.first(d));
    }
  }
  return q;
}

void Reference::fill(const Task& task, StreamInterval block, CoreWorker& worker) const {
  const std::size_t d = at(model_.head_dim);
  const std::size_t dv = at(model_.v_head_dim);
  const auto shifted = [&](std::int64_t by) {
    return by == 0 ? task.kv_head : (task.kv_head + by) % model_.num_kv_heads;
  };
  const std::int64_t k_head = shifted(k_head_shift_);
  const std::int64_t v_head = shifted(v_head_shift_);
  for_each_piece(
      task.slab->stream, block,
      [&](std::int64_t sequence, std::int64_t first, std::int64_t count, std::int64_t offset) {
        for (std::int64_t j = 0; j < count; ++j) {
          const ContentKey key{sequence, first + j};
          const std::size_t row = at(offset - block.begin + j);
          source_.k_row(key, k_head, worker.k().subspan(row * d, d));
          if (model_.mla) continue;
          source_.v_row(key, v_head, worker.v().subspan(row * dv, dv));
        }
      });
}

void Reference::finish(Task& task) {
  PartialAttention sums = std::move(*task.parts.front());
  for (std::size_t i = 1; i < task.parts.size(); ++i) {
    sums.merge(*task.parts[i], shape(*task.slab));
    task.parts[i].reset();
  }
  task.parts.clear();
  for (std::size_t token = 0; token < task.slab->rows.size(); ++token) {
    const std::int64_t r = task.slab->rows[token];
    for (std::int64_t g = 0; g < group_; ++g) {
      const std::int64_t head = task.kv_head * group_ + g;
      if (task.slab->stream.sees_unknown[token]) {
        writer_.put_nan(r, head);
      } else {
        writer_.put(r, head, sums, token, token * at(group_) + at(g));
      }
    }
  }
}

}  // namespace

Expected reference_attention(const Attended& meaning, const TensorSource& source,
                             const ReferenceOptions& options) {
  return Reference(meaning, source, options).compute(options.threads);
}

}  // namespace attest
