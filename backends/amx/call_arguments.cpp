#include "backends/amx/call_arguments.hpp"

#include <array>
#include <cstring>

#include "contracts/storage_label.hpp"
#include "memory/host_tensors.hpp"

namespace attest::amx {
namespace {

bool share_storage(const TensorMeta& k, const TensorMeta& v) {
  return same_storage(k.storage, v.storage) && k.storage_offset == v.storage_offset;
}

Rows rows_of(const std::byte* base, const TensorMeta& meta) {
  return {reinterpret_cast<const Bf16*>(base), meta.stride(0), meta.stride(1)};
}

constexpr std::array<Bf16, 4096> zeros{};

std::int64_t row_bytes(const TensorMeta& meta) { return meta.size(2) * 2; }

}  // namespace

const Bf16* zero_row() { return zeros.data(); }

Launch::Launch(const TensorSource& from, const TensorMeta& q_in, const TensorMeta& k_buffer,
               const TensorMeta& v_buffer, const TensorMeta& out_in, Stored stored, int variant,
               Defect which)
    : source(from),
      k_meta(k_buffer),
      v_meta(v_buffer),
      out_meta(out_in),
      sentinel(variant),
      defect(which),
      q(make_q(from, q_in)),
      out(make_output(out_in, variant)),
      k_pool(from, PoolHalf::k, k_buffer, stored) {
  if (!share_storage(k_buffer, v_buffer)) v_pool.emplace(from, PoolHalf::v, v_buffer, stored);
}

void Launch::common(KernelArguments& args, const IntArray& req_to_token,
                    const IntArray& pool_indices, const IntArray& seq_lens,
                    const std::optional<IntArray>& encoder_lens,
                    const std::optional<TensorMeta>& sinks) {
  args.batch = static_cast<std::int64_t>(seq_lens.values.size());
  args.num_q_heads = out_meta.size(1);
  args.num_kv_heads = k_meta.size(1);
  args.shape.defect = defect;
  args.shape.head_dim = static_cast<int>(k_meta.size(2));
  args.shape.v_head_dim = static_cast<int>(out_meta.size(2));
  args.k_pool = rows_of(k_pool.base(), k_meta);
  args.v_pool = rows_of(v_pool ? v_pool->base() : k_pool.base(), v_meta);
  args.out = reinterpret_cast<Bf16*>(out.data());
  if (req_to_token.meta.dtype == Dtype::int32) {
    narrow_table.assign(req_to_token.values.begin(), req_to_token.values.end());
    args.req_to_token = {narrow_table.data(), false};
  } else {
    wide_table = req_to_token.values;
    args.req_to_token = {wide_table.data(), true};
  }
  args.req_to_token_columns = req_to_token.size(1);
  pool_rows = pool_indices.values;
  lengths = seq_lens.values;
  args.req_pool_indices = pool_rows.data();
  args.seq_lens = lengths.data();
  if (encoder_lens) {
    encoder = encoder_lens->values;
    args.encoder_lens = encoder.data();
  }
  if (!sinks) return;
  const GuardedBuffer bits = make_sinks(source, *sinks);
  for (std::int64_t h = 0; h < args.num_q_heads; ++h) {
    Bf16 one = 0;
    std::memcpy(&one, bits.data() + 2 * h, 2);
    sink_values.push_back(decode(Dtype::bf16, one));
  }
  args.sinks = sink_values.data();
}

Rows Launch::new_rows(const TensorMeta& meta, bool half_is_v) {
  fresh.push_back(make_new_kv(source, meta, half_is_v));
  return rows_of(fresh.back().data(), meta);
}

void Launch::store(const TensorMeta& rows, bool half_is_v, const std::vector<std::int64_t>& slots) {
  const TensorMeta& pool_meta = half_is_v ? v_meta : k_meta;
  const KvPool& pool = half_is_v && v_pool ? *v_pool : k_pool;
  const GuardedBuffer from = make_new_kv(source, rows, half_is_v);
  written_slots = slots;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    for (std::int64_t h = 0; h < pool_meta.size(1); ++h) {
      const std::int64_t to = slots[i] * pool_meta.stride(0) + h * pool_meta.stride(1);
      const std::int64_t at = static_cast<std::int64_t>(i) * rows.stride(0) + h * rows.stride(1);
      std::memcpy(pool.base() + to * 2, from.data() + at * 2,
                  static_cast<std::size_t>(row_bytes(pool_meta)));
    }
  }
}

void Launch::collect(RunResult& result) const {
  std::vector<std::string>& damage = result.damage;
  result.out = read_output(out, out_meta, sentinel);
  if (const auto text = q.damage()) damage.push_back("q: " + *text);
  if (const auto text = output_damage(out, out_meta, sentinel)) damage.push_back("out: " + *text);
  for (const GuardedBuffer& buffer : fresh) {
    if (const auto text = buffer.damage()) damage.push_back("new k or v: " + *text);
  }
  for (const KvPool* pool : {&k_pool, v_pool ? &*v_pool : nullptr}) {
    if (pool == nullptr) continue;
    pool->add_stray_reads(result.stray_reads);
    if (!pool->note().empty()) result.lints.emplace_back(pool->note());
    if (const auto text = pool->damage(written_slots)) damage.push_back(*text);
  }
}

}  // namespace attest::amx
