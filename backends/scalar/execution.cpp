#include "backends/scalar/execution.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <thread>

#include "backends/scalar/attend.hpp"
#include "backends/scalar/elements.hpp"
#include "contracts/storage_label.hpp"
#include "memory/host_tensors.hpp"

namespace attest {
namespace {

/// Multiply-adds from which a second thread pays for its start.
constexpr double threads_pay = 2e8;

std::int64_t thread_count(const Operands& op, std::span<const RowGroup> groups, int asked) {
  if (asked > 0) return std::min<std::int64_t>(asked, op.num_kv_heads);
  double work = 0;
  for (const RowGroup& group : groups) {
    work += static_cast<double>(group.keys.size()) * static_cast<double>(group.rows.size());
  }
  work *= static_cast<double>(op.num_q_heads * (op.head_dim + op.v_head_dim));
  if (work < threads_pay) return 1;
  const std::int64_t cores = std::max(1U, std::thread::hardware_concurrency());
  return std::min(cores, op.num_kv_heads);
}

constexpr Fault of_the_merge[] = {
    Fault::last_split_dropped,           Fault::merge_not_rescaled,
    Fault::sink_in_every_split,          Fault::merge_stops_at_the_first_row,
    Fault::first_tile_of_splits_skipped, Fault::split_weights_in_base_2,
    Fault::split_outputs_in_bf16,        Fault::v_descale_in_every_split,
    Fault::tile_in_two_splits,           Fault::lse_of_the_last_split,
    Fault::split_remainder_lost,         Fault::split_maxima_in_bf16};
constexpr Fault of_several_tiles[] = {Fault::softmax_sum_not_rescaled, Fault::accumulator_in_bf16,
                                      Fault::half_not_rescaled};

/// Split count with which the fault can show at all; otherwise the asked one.
std::int64_t splits_for(Fault fault, std::int64_t asked) {
  const auto is_one_of = [fault](std::span<const Fault> faults) {
    return std::find(faults.begin(), faults.end(), fault) != faults.end();
  };
  if (is_one_of(of_the_merge)) return std::max<std::int64_t>(asked, 2);
  return is_one_of(of_several_tiles) ? 1 : asked;
}

/// A wider row is silently cut, as the kernels do it; a narrower one would be read past its end.
void require_dim(const char* name, const KvView& view, std::int64_t dim) {
  if (view.dim() >= dim) return;
  throw KernelRefusal(std::string(name) + " rows hold " + std::to_string(view.dim()) +
                      " elements, the kernel reads " + std::to_string(dim));
}

void kill_or_hang(Fault fault) {
  if (fault == Fault::crash) {
    volatile int* nowhere = nullptr;
    *nowhere = 1;
  }
  while (fault == Fault::hang) std::this_thread::sleep_for(std::chrono::seconds(1));
}

}  // namespace

std::int64_t saturated_count(std::int64_t value) {
  constexpr std::int64_t largest = std::int64_t{1} << 40;
  return std::clamp(value, -largest, largest);
}

KvPools::KvPools(const TensorSource& source, const TensorMeta& k_meta, const TensorMeta& v_meta,
                 Stored stored)
    : k_pool(source, PoolHalf::k, k_meta, stored), k(k_pool, k_meta) {
  const bool one_view = same_storage(k_meta.storage, v_meta.storage) &&
                        k_meta.storage_offset == v_meta.storage_offset;
  if (one_view) {
    v = KvView(k_pool, v_meta);
    return;
  }
  v_pool.emplace(source, PoolHalf::v, v_meta, stored);
  v = KvView(*v_pool, v_meta);
}

void KvPools::mistake_strides(const TensorMeta& k_meta, const TensorMeta& v_meta, Fault fault) {
  if (fault == Fault::v_addressed_with_ks_strides && v_pool) {
    TensorMeta meta = v_meta;
    meta.strides = k_meta.strides;
    v = KvView(*v_pool, meta);
  }
  if (fault != Fault::heads_taken_as_dense) return;
  const auto dense = [](TensorMeta meta) {
    meta.strides[meta.strides.size() - 2] = meta.shape.back();
    return meta;
  };
  k = KvView(k_pool, dense(k_meta));
  v = KvView(v_pool ? *v_pool : k_pool, dense(v_meta));
}

bool KvPools::can_store(std::int64_t slot) const {
  const auto writable = [slot](const KvPool& pool, const KvView& view) {
    const std::int64_t heads = (view.heads() - 1) * view.head_stride_bytes();
    return view.row(slot, 0) && pool.writable(view.offset(slot, 0), heads + view.row_bytes());
  };
  return writable(k_pool, k) && writable(v_pool ? *v_pool : k_pool, v);
}

void KvPools::add_damage(std::vector<std::string>& damage) const {
  if (const auto text = k_pool.damage(written_slots)) damage.push_back(*text);
  if (!v_pool) return;
  if (const auto text = v_pool->damage(written_slots)) damage.push_back(*text);
}

void KvPools::add_account(RunResult& result) const {
  for (const KvPool* pool : {&k_pool, v_pool ? &*v_pool : nullptr}) {
    if (pool == nullptr) continue;
    pool->add_stray_reads(result.stray_reads);
    if (!pool->note().empty()) result.lints.emplace_back(pool->note());
  }
}

void add_guard_damage(const char* name, const GuardedBuffer& buffer,
                      std::vector<std::string>& damage) {
  if (const auto text = buffer.damage()) damage.push_back(std::string(name) + ": " + *text);
}

WrapModel wrap_of(const Mistake& mistake, bool narrow) {
  WrapModel wrap = mistake.wrap;
  switch (mistake.fault) {
    case Fault::aliases_past_4_gib:
      return {WrapStep::bytes, WrapKind::uint32};
    case Fault::byte_offset_in_seqused_dtype:
      wrap = {WrapStep::bytes, WrapKind::int32, true, true, true};
      break;
    case Fault::element_offset_in_seqused_dtype:
    case Fault::slot_offset_in_table_dtype:
      wrap = {WrapStep::slot_sum, WrapKind::int32, true, true, true};
      break;
    default:
      break;
  }
  return wrap.follows_index_dtype && !narrow ? WrapModel{} : wrap;
}

std::optional<KeyRow> key_at(const KvPools& pools, std::int64_t page, std::int64_t in_page,
                             const WrapModel& wrap) {
  const WrapModel of_k = wrap.in_k ? wrap : WrapModel{};
  const WrapModel of_v = wrap.in_v ? wrap : WrapModel{};
  const KeyRow key{pools.k.row(page, in_page, of_k), pools.v.row(page, in_page, of_v)};
  const bool k_is_there = key.k != nullptr || pools.k.reads_zero(page, in_page, of_k);
  const bool v_is_there = key.v != nullptr || pools.v.reads_zero(page, in_page, of_v);
  if (!k_is_there || !v_is_there) return std::nullopt;
  return key;
}

KeyRow cut_by_descriptor(KeyRow key, const KvPools& pools, std::int64_t page, std::int64_t in_page,
                         Fault fault) {
  if (fault != Fault::descriptor_size_in_32_bits) return key;
  const auto past = [&](const KvView& view) {
    return view.offset(page, in_page) >= view.span_of_32_bits();
  };
  if (past(pools.k)) key.k = nullptr;
  if (past(pools.v)) key.v = nullptr;
  return key;
}

Execution::Execution(const TensorSource& source, const RunOptions& options, const Mistake& wrong,
                     const TensorMeta& q, const TensorMeta& out, OutLayout layout)
    : mistake(wrong),
      source_(source),
      options_(options),
      out_meta_(out),
      q_(make_q(source, q)),
      out_(make_output(out, options.sentinel)) {
  op.fault = mistake.fault;
  op.num_q_heads = q.size(1);
  op.head_dim = q.size(2);
  op.q = q_.data();
  op.q_dtype = q.dtype;
  op.q_row_stride = q.stride(0);
  op.q_head_stride = q.stride(1);
  op.v_head_dim = out.size(2);
  op.out = out_.bytes();
  op.out_dtype = out.dtype;
  const bool dense = layout == OutLayout::dense;
  op.out_row_stride = dense ? op.num_q_heads * op.v_head_dim : out.stride(0);
  op.out_head_stride = dense ? op.v_head_dim : out.stride(1);
  // Its sum is not the one that a log-sum-exp is taken of.
  const bool sums_rounded_p = mistake.fault == Fault::sum_of_rounded_p;
  if (out.size(1) == op.num_q_heads && !sums_rounded_p) {
    lse_.assign(static_cast<std::size_t>(out.size(0) * op.num_q_heads),
                std::numeric_limits<float>::quiet_NaN());
  }
  op.lse = lse_;
}

void Execution::set_features(double scale, double softcap, const std::optional<TensorMeta>& sinks) {
  op.scale = static_cast<float>(scale);
  if (op.fault == Fault::scale_one_percent_large) op.scale *= 1.01F;
  op.softcap = op.fault == Fault::softcap_missing ? 0.0F : static_cast<float>(softcap);
  if (!sinks || op.fault == Fault::sink_missing) return;
  sinks_.emplace(make_sinks(source_, *sinks));
  op.sinks.resize(static_cast<std::size_t>(op.num_q_heads));
  widen(sinks->dtype, sinks_->data(), std::min(sinks->size(0), op.num_q_heads), op.sinks.data());
}

void Execution::set_descales(bool q, bool k, bool v) {
  if (op.fault == Fault::descales_missing) return;
  if (op.fault == Fault::descale_of_v_missing) v = false;
  const Model& model = source_.problem().model;
  const double q_descale = q ? model.q_descale.value_or(1) : 1;
  const double k_descale = k ? model.k_descale.value_or(1) : 1;
  const double v_descale = v ? model.v_descale.value_or(1) : 1;
  const double again = op.fault == Fault::k_descale_twice ? k_descale : 1;
  op.scale = static_cast<float>(static_cast<double>(op.scale) * q_descale * k_descale * again);
  op.v_descale = static_cast<float>(op.fault == Fault::descale_of_v_is_ks ? k_descale : v_descale);
  if (op.fault == Fault::v_descale_inverted) op.v_descale = 1 / op.v_descale;
}

void Execution::use_pools(const KvPools& pools) {
  require_dim("k", pools.k, op.head_dim);
  require_dim("v", pools.v, op.v_head_dim);
  if (pools.k.heads() != pools.v.heads()) {
    throw KernelRefusal("k has " + std::to_string(pools.k.heads()) + " heads, v has " +
                        std::to_string(pools.v.heads()));
  }
  op.num_kv_heads = std::max<std::int64_t>(pools.k.heads(), 1);
  op.pool = {pools.k.dtype(), pools.v.dtype(), pools.k.head_stride_bytes(),
             pools.v.head_stride_bytes()};
  v_aliases_k_ = !pools.v_pool;
}

void Execution::use_fresh(const KvView& k, const KvView& v) {
  require_dim("k_extend", k, op.head_dim);
  require_dim("v_extend", v, op.v_head_dim);
  op.fresh = {k.dtype(), v.dtype(), k.head_stride_bytes(), v.head_stride_bytes()};
}

void Execution::set_splits(std::int64_t asked) {
  std::int64_t splits = options_.kv_splits > 0 ? options_.kv_splits : asked;
  if (options_.form == "2d") splits = 1;
  if (options_.form == "3d" && options_.kv_splits <= 0) splits = std::max<std::int64_t>(splits, 8);
  op.splits = std::clamp<std::int64_t>(splits_for(op.fault, splits), 1, 1024);
}

void Execution::lint_rows_outside(const char* array, std::size_t i, std::int64_t first,
                                  std::int64_t count, std::int64_t rows) {
  if (first >= 0 && first + count <= rows) return;
  lints.push_back(std::string(array) + " gives request " + std::to_string(i) + " rows [" +
                  std::to_string(first) + ", " + std::to_string(first + count) + ") of " +
                  std::to_string(rows) + ": a device reads and writes past the tensors there");
}

void Execution::count_bytes(std::span<const RowGroup> groups, const KvPools& pools,
                            RunResult& result) const {
  std::int64_t keys = 0;
  for (const RowGroup& group : groups) keys += static_cast<std::int64_t>(group.keys.size());
  const auto bytes = [](const KvView& view) { return view.row_bytes(); };
  const std::int64_t row = bytes(pools.k) + (v_aliases_k_ ? 0 : bytes(pools.v));
  // Heads that a framework expanded (stride 0) are loaded once each: the launch does not know that
  // they are one.
  const std::int64_t distinct = pools.k.head_stride_bytes() == 0 ? 1 : op.num_kv_heads;
  result.counters["kv_bytes"] = keys * row * op.num_kv_heads;
  result.counters["kv_bytes_minimum"] = keys * row * distinct;
  result.counters["launches"] = op.splits > 1 ? 2 : 1;
}

RunResult Execution::run(std::span<const RowGroup> groups, const KvPools& pools,
                         const std::function<void(const Operands&)>& kernel) {
  kill_or_hang(op.fault);
  op.threads = thread_count(op, groups, options_.threads);
  kernel ? kernel(op) : attend(op, groups);
  if (op.fault == Fault::writes_past_the_end) {
    std::memset(out_.data() + out_.size(), 0x5a, 2);
  }

  RunResult result;
  result.out = read_output(out_, out_meta_, options_.sentinel);
  result.out.lse = lse_;
  result.engine = "cpu";
  result.form = op.splits > 1 ? "split " + std::to_string(op.splits) : "2d";
  result.lints = lints;
  count_bytes(groups, pools, result);
  add_guard_damage("q", q_, result.damage);
  if (const auto text = output_damage(out_, out_meta_, options_.sentinel)) {
    result.damage.push_back("out: " + *text);
  }
  if (sinks_) add_guard_damage("sinks", *sinks_, result.damage);
  pools.add_account(result);
  pools.add_damage(result.damage);
  return result;
}

}  // namespace attest
