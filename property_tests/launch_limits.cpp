#include "property_tests/launch_limits.hpp"

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "contracts/call_fields.hpp"
#include "contracts/signatures.hpp"
#include "contracts/signatures/pool_view.hpp"
#include "memory/tensor_layout.hpp"

namespace attest {
namespace {

using Reason = std::optional<std::string>;

std::string text_of(const std::vector<std::int64_t>& numbers) {
  std::string text;
  for (const std::int64_t number : numbers) {
    text += (text.empty() ? "[" : ", ") + std::to_string(number);
  }
  return text.empty() ? "[]" : text + "]";
}

std::string whole(double number) { return std::to_string(static_cast<std::int64_t>(number)); }

/// "q_extend of shape [5, 8, 64] with strides [1073741824, 64, 1]"
std::string tensor_text(std::string_view key, const TensorMeta& meta) {
  return std::string(key) + " of shape " + text_of(meta.shape) + " with strides " +
         text_of(meta.strides);
}

/// Bytes from the first element to behind the last; in double, since the numbers are anybody's.
double reach(const TensorMeta& meta) {
  double last = 0;
  for (std::size_t d = 0; d < meta.shape.size(); ++d) {
    if (meta.shape[d] <= 0) return 0;
    last += static_cast<double>(meta.shape[d] - 1) * static_cast<double>(meta.stride(d));
  }
  return (last + 1) * static_cast<double>(size_bytes(meta.dtype));
}

/// The half of the cache that an argument is, or nothing: 'k' or 'v'.
char cache_half(std::string_view key) {
  if (key == "k" || key == "k_buffer" || key == "kv_buffer" || key == "key_cache") return 'k';
  return key == "v" || key == "v_buffer" || key == "value_cache" ? 'v' : 0;
}

bool is_query(std::string_view key) { return key == "q" || key == "q_extend" || key == "query"; }

/// Elements per row that the tensors' source writes there; 0 for tensors it does not fill.
std::int64_t filled_dim(std::string_view key, const Model& model) {
  if (key == "v_extend" || key == "value" || cache_half(key) == 'v') return model.v_head_dim;
  const bool k_side = key == "k_extend" || key == "key" || cache_half(key) == 'k';
  return k_side || is_query(key) ? model.head_dim : 0;
}

/// Scheduler's pages in use, as units of the view.
double units_in_use(const PoolLayout& layout, const SlotMap& slots) {
  std::vector<std::int64_t> units;
  const auto use = [&](std::int64_t slot) {
    if (slot >= 0 && slot < layout.slots) units.push_back(slot / layout.unit_slots);
  };
  for (const std::vector<std::int64_t>& pages : slots.pages) {
    for (const std::int64_t page : pages) use(page * slots.page_size);
  }
  for (const std::vector<std::int64_t>& encoder : slots.encoder_slots) {
    for (const std::int64_t slot : encoder) use(slot);
  }
  std::sort(units.begin(), units.end());
  return static_cast<double>(std::unique(units.begin(), units.end()) - units.begin());
}

class Checker {
 public:
  /// \param heads_first  the caches of the call have heads before tokens
  Checker(const Problem& problem, const SlotMap& slots, const LaunchLimits& limits,
          bool heads_first)
      : problem_(problem), slots_(slots), limits_(limits), heads_first_(heads_first) {}

  void tensor(std::string_view key, const TensorMeta& meta) {
    if (reason_) return;
    const double most = cache_half(key) ? limits_.pool_bytes : limits_.tensor_bytes;
    if (reach(meta) > most) {
      reason_ = tensor_text(key, meta) + " reaches past " + whole(most) +
                " bytes, the most that attest launches";
      return;
    }
    const std::int64_t dim = filled_dim(key, problem_.model);
    if (dim > 0 && !meta.shape.empty() && meta.shape.back() != dim) {
      reason_ = tensor_text(key, meta) + " holds " + std::to_string(meta.shape.back()) +
                " elements per head where the model has " + std::to_string(dim) +
                ": there is no data to fill it with";
      return;
    }
    const Dtype data = is_query(key) ? problem_.model.q_dtype : problem_.model.kv_dtype;
    if (dim > 0 && size_bytes(meta.dtype) != size_bytes(data)) {
      reason_ = std::string(key) + " of " + std::string(name(meta.dtype)) +
                " has elements of another size than the problem's " + std::string(name(data)) +
                ": there is no data to fill it with";
      return;
    }
    if (cache_half(key)) cache(key, meta);
  }

  void splits(std::string_view key, std::int64_t count, const TensorMeta& out) {
    const double bytes = static_cast<double>(count) * reach(contiguous(Dtype::f32, out.shape));
    if (reason_ || count <= 1 || bytes <= limits_.tensor_bytes) return;
    reason_ = std::string(key) + " = " + std::to_string(count) + " partial results of " +
              tensor_text("the output", out) + " take more than " + whole(limits_.tensor_bytes) +
              " bytes, the most that attest launches";
  }

  void work(const Call& call, const TensorMeta& q, double longest) {
    const Model& m = problem_.model;
    const double per_key = static_cast<double>(m.head_dim + m.v_head_dim);
    const double heads = static_cast<double>(std::max(q.size(1), m.num_q_heads));
    const double rows =
        static_cast<double>(std::max(q.size(0), problem_.total_new_tokens())) * heads * per_key;
    longest = std::max(longest, static_cast<double>(problem_.max_kv_len()));
    if (reason_ || rows * longest <= limits_.multiply_adds) return;  // the usual case
    if (rows * static_cast<double>(size_bytes(Dtype::f32)) > 4 * limits_.tensor_bytes) {
      reason_ = std::to_string(problem_.total_new_tokens()) + " new tokens of " + whole(heads) +
                " heads take more than " + whole(4 * limits_.tensor_bytes) +
                " bytes of queries and results, the most that attest launches";
      return;
    }
    double keys = 0;
    for (const Attended& meaning : {attended(problem_), read(call, problem_, slots_)}) {
      double seen = 0;
      for (const AttendedRow& row : meaning.rows) seen += static_cast<double>(row.visible());
      keys = std::max(keys, seen);
    }
    if (keys * heads * per_key <= limits_.multiply_adds) return;
    reason_ = whole(keys) + " visible keys of all rows together, times " + whole(heads) +
              " heads of " + whole(per_key) + " elements, are more than " +
              whole(limits_.multiply_adds) + " multiply-adds, the most that attest launches";
  }

  Reason reason() const { return reason_; }

 private:
  void cache(std::string_view key, const TensorMeta& meta) {
    try {
      const PoolLayout layout = pool_layout(heads_first_ ? swap_heads_and_tokens(meta) : meta,
                                            problem_.pool.page_size, std::string(key).c_str());
      if (layout.slots == 0) return;
      const auto unit = static_cast<double>(layout.unit_end(0) - layout.unit_begin(0));
      const double used = units_in_use(layout, slots_) * unit;
      if (used <= limits_.used_bytes) return;
      reason_ = tensor_text(key, meta) + " holds the batch in pages of " + whole(unit) +
                " bytes, " + whole(used) + " together; attest launches at most " +
                whole(limits_.used_bytes);
    } catch (const std::invalid_argument& error) {
      reason_ = error.what();
    }
  }

  const Problem& problem_;
  const SlotMap& slots_;
  const LaunchLimits& limits_;
  bool heads_first_;
  Reason reason_;
};

/// The longest row that a table and its lengths describe.
double longest_of(const IntArray& lengths, double table_tokens) {
  double longest = 0;
  for (const std::int64_t length : lengths.values) {
    longest = std::max(longest, static_cast<double>(length));
  }
  return std::min(longest, table_tokens);
}

void check_work(const UnifiedCall& c, const Call& call, std::int64_t forced, Checker& checker) {
  const bool split = c.launch && c.launch->form == "3d";
  checker.splits("launch.kv_splits", split ? c.launch->kv_splits : 1, c.out);
  checker.splits("the forced split count", forced, c.out);
  const double columns = static_cast<double>(c.block_table.size(1));
  checker.work(call, c.q, longest_of(c.seqused_k, columns * static_cast<double>(c.k.size(1))));
}
void check_work(const ExtendCall& c, const Call& call, std::int64_t forced, Checker& checker) {
  checker.splits("the forced split count", forced, c.o_extend);
  checker.work(call, c.q_extend,
               longest_of(c.seq_lens, static_cast<double>(c.req_to_token.size(1))));
}
void check_work(const DecodeCall& c, const Call& call, std::int64_t forced, Checker& checker) {
  checker.splits("attn_logits.shape[2]", c.attn_logits.size(2), c.output);
  checker.splits("the forced split count", forced, c.output);
  checker.work(call, c.query, longest_of(c.seq_lens, static_cast<double>(c.req_to_token.size(1))));
}
void check_work(const MlaDecodeCall& c, const Call& call, std::int64_t forced, Checker& checker) {
  checker.splits("num_kv_splits", c.num_kv_splits.value_or(1), c.o);
  checker.splits("the forced split count", forced, c.o);
  const double page = static_cast<double>(std::max<std::int64_t>(c.page_size, 1));
  checker.work(call, c.q, static_cast<double>(c.kv_indices.values.size()) * page);
}
void check_work(const BatchPrefillCall& c, const Call& call, std::int64_t forced,
                Checker& checker) {
  checker.splits("the forced split count", forced, c.q);
  checker.work(call, c.q, static_cast<double>(c.kv_page_indices.values.size()));
}

void check_work(const PagedRaggedCall& c, const Call& call, std::int64_t forced, Checker& checker) {
  checker.splits("max_num_partitions", c.max_num_partitions, c.out);
  checker.splits("the forced split count", forced, c.out);
  const double page = static_cast<double>(std::max<std::int64_t>(c.block_size, 1));
  checker.work(call, c.query, static_cast<double>(c.kv_page_indices.values.size()) * page);
}
void check_work(const LegacyExtendCall& c, const Call& call, std::int64_t forced,
                Checker& checker) {
  checker.splits("the forced split count", forced, c.o_extend);
  const double fresh = static_cast<double>(std::min(c.k_extend.size(0), c.v_extend.size(0)));
  checker.work(call, c.q_extend, static_cast<double>(c.kv_indices.values.size()) + fresh);
}

void check_work(const VllmCpuCall& c, const Call& call, std::int64_t forced, Checker& checker) {
  checker.splits("the forced split count", forced, c.output);
  const double columns = static_cast<double>(c.block_table.size(1));
  checker.work(call, c.query,
               longest_of(c.seq_lens, columns * static_cast<double>(c.key_cache.size(2))));
}

void check_argument(std::string_view key, const TensorMeta& meta, Checker& checker) {
  checker.tensor(key, meta);
}
void check_argument(std::string_view key, const std::optional<TensorMeta>& meta, Checker& checker) {
  if (meta) checker.tensor(key, *meta);
}
template <class Other>
void check_argument(std::string_view, const Other&, Checker&) {}

}  // namespace

std::optional<std::string> cannot_launch(const Call& call, const Problem& problem,
                                         const SlotMap& slots, std::int64_t kv_splits,
                                         const LaunchLimits& limits) {
  Checker checker(problem, slots, limits, std::holds_alternative<VllmCpuCall>(call));
  std::visit(
      [&](const auto& c) {
        const auto each = [&](const auto&... field) {
          (check_argument(field.key, c.*field.member, checker), ...);
        };
        std::apply(each, call_fields<std::decay_t<decltype(c)>>);
        check_work(c, call, kv_splits, checker);
      },
      call);
  return checker.reason();
}

}  // namespace attest
