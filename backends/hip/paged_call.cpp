#include "backends/hip/paged_call.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

#include "contracts/storage_label.hpp"
#include "memory/host_tensors.hpp"

namespace attest::hip {
namespace {

using Kind = MetadataArray::Kind;

Format format_of_dtype(Dtype dtype) {
  switch (dtype) {
    case Dtype::f32:
      return Format::f32;
    case Dtype::f16:
      return Format::f16;
    case Dtype::fp8_e4m3fn:
      return Format::e4m3fn;
    case Dtype::fp8_e4m3fnuz:
      return Format::e4m3fnuz;
    default:
      return Format::bf16;
  }
}

bool share_storage(const TensorMeta& k, const TensorMeta& v) {
  return same_storage(k.storage, v.storage) && k.storage_offset == v.storage_offset;
}

PoolArgs pool_args(const void* data, const TensorMeta& meta) {
  return {data, meta.stride(0), meta.stride(1), meta.stride(2)};
}

/// V as the head of every latent row.
TensorMeta latent_v(TensorMeta kv, std::int64_t v_head_dim) {
  kv.shape.back() = std::min(kv.shape.back(), v_head_dim);
  return kv;
}

std::vector<float> values_of(const GuardedBuffer& buffer, Dtype dtype, std::int64_t count) {
  std::vector<float> values;
  const std::size_t each = size_bytes(dtype);
  for (std::int64_t i = 0; i < count; ++i) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, buffer.data() + static_cast<std::size_t>(i) * each, each);
    values.push_back(decode(dtype, bits));
  }
  return values;
}

void add_damage(const char* name, const std::optional<std::string>& text, RunResult& result) {
  if (text) result.damage.push_back(std::string(name) + *text);
}

}  // namespace

PagedCall::PagedCall(const TensorMeta& q, const TensorMeta& out, const TensorMeta& k,
                     const TensorMeta& v, const TensorSource& source, const RunOptions& options,
                     LaunchSession& session)
    : session_(session),
      out_meta_(out),
      k_meta_(k),
      v_meta_(v),
      sentinel_(options.sentinel),
      q_(make_q(source, q)),
      out_(make_output(out, options.sentinel)),
      k_pool_(source, PoolHalf::k, k, Stored::committed_and_new) {
  if (!share_storage(k, v)) v_pool_.emplace(source, PoolHalf::v, v, Stored::committed_and_new);
  args_.total_rows = std::min(q.size(0), out.size(0));
  args_.num_q_heads = static_cast<std::int32_t>(q.size(1));
  args_.num_kv_heads = static_cast<std::int32_t>(k.size(2));
  args_.head_dim = static_cast<std::int32_t>(q.size(2));
  args_.v_head_dim = static_cast<std::int32_t>(out.size(2));
  args_.q_format = format_of_dtype(q.dtype);
  args_.kv_format = format_of_dtype(k.dtype);
  args_.out_format = format_of_dtype(out.dtype);
  // The kernel does not write to q.
  args_.q = {const_cast<void*>(session_.input(q_.bytes())), q.stride(0), q.stride(1)};  // NOLINT
  args_.out = {session_.output(out_.bytes()), out.stride(0), out.stride(1)};
  lse_.assign(static_cast<std::size_t>(out.size(0) * q.size(1)),
              std::numeric_limits<float>::quiet_NaN());
  args_.lse = static_cast<float*>(session_.output(std::as_writable_bytes(std::span(lse_))));
  const void* const k_base = session_.pool(k_pool_);
  args_.k = pool_args(k_base, k);
  args_.v = pool_args(v_pool_ ? session_.pool(*v_pool_) : k_base, v);
  args_.page_size = static_cast<std::int32_t>(k.size(1));
  args_.vectors = loads_vectors() ? 1 : 0;
  const auto q_bytes = static_cast<std::int64_t>(size_bytes(q.dtype));
  const bool q_vectors = !is_fp8(q.dtype) && q.size(2) % 8 == 0 &&
                         q.stride(0) * q_bytes % 16 == 0 && q.stride(1) * q_bytes % 16 == 0 &&
                         reinterpret_cast<std::uintptr_t>(args_.q.data) % 16 == 0;
  args_.q_vectors = q_vectors ? 1 : 0;
  route_input_.total_rows = args_.total_rows;
  route_input_.group = args_.num_q_heads / args_.num_kv_heads;
  for (const Request& request : source.problem().requests) live_.push_back(request.live);
  route_input_.num_kv_heads = args_.num_kv_heads;
}

PagedCall::PagedCall(const UnifiedCall& call, const TensorSource& source, const RunOptions& options,
                     LaunchSession& session)
    : PagedCall(call.q, call.out, call.k, call.v, source, options, session) {
  const Model& model = source.problem().model;
  args_.batch = static_cast<std::int32_t>(call.seqused_k.numel());
  if (call.max_seqlen_q != 1) args_.first_rows = narrow(Kind::first_rows, call.cu_seqlens_q);
  args_.lengths = indices(Kind::lengths, call.seqused_k);
  args_.table = indices(Kind::table, call.block_table);
  args_.table_stride = call.block_table.size(1);
  args_.scale = static_cast<float>(call.softmax_scale);
  args_.softcap = static_cast<float>(call.softcap);
  if (call.window_size[0] >= 0) {
    args_.window_left = static_cast<std::int32_t>(
        std::min<std::int64_t>(call.window_size[0], std::numeric_limits<std::int32_t>::max() / 2));
  }
  if (call.sinks) {
    sinks_.emplace(make_sinks(source, *call.sinks));
    const std::vector<float> values = values_of(*sinks_, call.sinks->dtype, call.q.size(1));
    const auto bytes = std::as_bytes(std::span(values));
    arrays_.emplace_back(bytes.begin(), bytes.end());
    args_.sinks = static_cast<const float*>(session_.input(arrays_.back()));
  }
  args_.q_descale = one(model.q_descale, call.q_descale.has_value());
  args_.k_descale = one(model.k_descale, call.k_descale.has_value());
  args_.v_descale = one(model.v_descale, call.v_descale.has_value());
  route_input_.batch = args_.batch;
  route_input_.max_seqlen_q = call.max_seqlen_q;
  args_.max_seqlen_k = route_input_.max_seqlen_k = call.max_seqlen_k;
  live_.resize(static_cast<std::size_t>(args_.batch), true);  // an edited call may have others
  route_input_.window_left = args_.window_left;
  for (const std::int64_t length : call.seqused_k.values) keys_ += length;
}

PagedCall::PagedCall(const MlaDecodeCall& call, const TensorSource& source,
                     const RunOptions& options, LaunchSession& session)
    : PagedCall(call.q, call.o, call.kv_buffer, latent_v(call.kv_buffer, call.o.size(2)), source,
                options, session) {
  const Model& model = source.problem().model;
  latent_ = true;
  const std::int64_t batch = call.kv_indptr.numel() - 1;
  args_.batch = static_cast<std::int32_t>(batch);
  args_.rows_each = static_cast<std::int32_t>(call.max_seqlen_q);
  const std::vector<std::int64_t>& offsets = call.qo_indptr.values;
  args_.total_rows = std::min(args_.total_rows, offsets.empty() ? 0 : offsets.back());
  args_.page_starts = narrow(Kind::page_starts, call.kv_indptr);
  args_.last_page_lens = narrow(Kind::last_page_lens, call.kv_last_page_lens);
  args_.table = indices(Kind::table, call.kv_indices);
  args_.scale = static_cast<float>(call.sm_scale);
  args_.q_descale = one(model.q_descale, call.q_scale.has_value());
  args_.k_descale = one(model.k_descale, call.kv_scale.has_value());
  args_.v_descale = one(model.v_descale, call.kv_scale.has_value());
  route_input_.batch = batch;
  route_input_.max_seqlen_q = call.max_seqlen_q;
  route_input_.total_rows = args_.total_rows;
  keys_ = call.kv_indices.numel() * call.page_size;
  args_.max_seqlen_k = route_input_.max_seqlen_k = batch > 0 ? keys_ / batch : 0;
  live_.resize(static_cast<std::size_t>(args_.batch), true);
}

void* PagedCall::metadata(Kind kind, const IntArray& array, bool wide) {
  void* const memory = session_.metadata(bytes_of_integers(array.values, wide));
  metadata_.push_back({kind, memory, wide, array.values});
  return memory;
}

const std::int32_t* PagedCall::narrow(Kind kind, const IntArray& array) {
  return static_cast<const std::int32_t*>(metadata(kind, array, false));
}

IndexArgs PagedCall::indices(Kind kind, const IntArray& array) {
  const bool wide = array.meta.dtype == Dtype::int64;
  return {metadata(kind, array, wide), wide ? 1 : 0};
}

/// A one-element tensor, or nothing where the call passes none.
const float* PagedCall::one(std::optional<double> value, bool passed) {
  if (!passed) return nullptr;
  const auto number = static_cast<float>(value.value_or(1));
  arrays_.emplace_back(sizeof number);
  std::memcpy(arrays_.back().data(), &number, sizeof number);
  return static_cast<const float*>(session_.input(arrays_.back()));
}

/// Whether eight elements from every eighth of each row lie aligned: 16 bytes, or 8 of fp8.
bool PagedCall::loads_vectors() const {
  const auto bytes = static_cast<std::int64_t>(size_bytes(k_meta_.dtype));
  const std::int64_t alignment = bytes == 1 ? 8 : 16;
  const auto aligned = [&](const PoolArgs& pool) {
    return reinterpret_cast<std::uintptr_t>(pool.data) % static_cast<std::uintptr_t>(alignment) ==
               0 &&
           pool.page_stride * bytes % alignment == 0 && pool.slot_stride * bytes % alignment == 0 &&
           pool.head_stride * bytes % alignment == 0;
  };
  return args_.head_dim % 8 == 0 && args_.v_head_dim % 8 == 0 && aligned(args_.k) &&
         aligned(args_.v);
}

void PagedCall::wrap(const WrapModel& model) {
  args_.wrap = model;
  arrays_.emplace_back(std::size_t{largest_head_dim} * sizeof(float));
  args_.zeros = session_.input(arrays_.back());
}

void PagedCall::run(const PagedKernels& kernels, const Route& route, std::string_view graph,
                    GraphFault fault) {
  args_.splits = route.splits;
  if (args_.splits > 1) {
    const auto parts =
        static_cast<std::size_t>(args_.total_rows * args_.num_q_heads * args_.splits);
    const auto columns = static_cast<std::size_t>(args_.v_head_dim);
    args_.part_out = static_cast<float*>(session_.scratch(parts * columns * sizeof(float)));
    args_.part_stats = static_cast<float*>(session_.scratch(parts * 2 * sizeof(float)));
  }
  PagedLaunch launch = latent_ ? kernels.latent_bf16 : kernels.bf16;
  if (args_.q_format == Format::f16) launch = latent_ ? kernels.latent_f16 : kernels.f16;
  if (args_.q_format == Format::f32) launch = kernels.f32;
  std::vector<std::string> damage;
  const GraphCall call{session_,         args_, metadata_, launch, kernels.lengths,
                       route.row_groups, live_};
  if (args_.total_rows > 0 && args_.batch > 0) {
    if (graph.empty()) {
      run_eagerly(call, fault);
    } else {
      damage = run_in_graph(call, graph_plan(graph), fault);
    }
  }
  damage_ = session_.finish();
  damage_.insert(damage_.end(), damage.begin(), damage.end());
}

void PagedCall::collect(RunResult& result) const {
  result.out = read_output(out_, out_meta_, sentinel_);
  if (out_meta_.size(1) == args_.num_q_heads) result.out.lse = lse_;
  const auto bytes = static_cast<std::int64_t>(size_bytes(k_meta_.dtype));
  const std::int64_t row = bytes * (args_.head_dim + (v_pool_ ? args_.v_head_dim : 0));
  // Heads that a framework expanded (stride 0) are loaded once each: the launch does not know that
  // they are one.
  result.counters["kv_bytes"] = keys_ * row * args_.num_kv_heads;
  result.counters["kv_bytes_minimum"] =
      keys_ * row * (args_.k.head_stride == 0 ? 1 : args_.num_kv_heads);
  result.counters["launches"] = args_.splits > 1 ? 2 : 1;
  result.damage = damage_;
  add_damage("q: ", q_.damage(), result);
  add_damage("out: ", output_damage(out_, out_meta_, sentinel_), result);
  if (sinks_) add_damage("sinks: ", sinks_->damage(), result);
  for (const KvPool* pool : {&k_pool_, v_pool_ ? &*v_pool_ : nullptr}) {
    if (pool == nullptr) continue;
    pool->add_stray_reads(result.stray_reads);
    if (!pool->note().empty()) result.lints.emplace_back(pool->note());
  }
  add_damage("", k_pool_.damage({}), result);
  if (v_pool_) add_damage("", v_pool_->damage({}), result);
}

}  // namespace attest::hip
