#include "memory/host_tensors.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "memory/tensor_layout.hpp"

namespace attest {
namespace {

void store(std::byte* to, Dtype dtype, std::uint32_t bits) {
  const auto half = static_cast<std::uint16_t>(bits);
  const auto byte = static_cast<std::uint8_t>(bits);
  switch (size_bytes(dtype)) {
    case 1:
      return void(std::memcpy(to, &byte, 1));
    case 2:
      return void(std::memcpy(to, &half, 2));
    default:
      return void(std::memcpy(to, &bits, 4));
  }
}

std::uint32_t load(const std::byte* from, Dtype dtype) {
  std::uint32_t bits = 0;  // little-endian, as every machine this runs on
  std::memcpy(&bits, from, size_bytes(dtype));
  return bits;
}

std::uint32_t sentinel_bits(Dtype dtype, int variant) {
  const bool second = variant != 0;
  switch (dtype) {
    case Dtype::f32:
      return second ? 0x7feafeea : 0x7fd5ded5;
    case Dtype::fp8_e4m3fn:
      return second ? 0xff : 0x7f;
    case Dtype::fp8_e4m3fnuz:
      return second ? 0xff : 0x80;
    default:
      return second ? 0x7fea : 0x7fd5;  // NaN in f16 and bf16
  }
}

/// Calls write(row, head, bytes of that row) for every row of a sealed buffer.
template <class Write>
GuardedBuffer input_rows(const TensorSource& source, const RowLayout& layout, Write&& write) {
  GuardedBuffer buffer(layout.span_bytes());
  const auto bytes = static_cast<std::int64_t>(size_bytes(layout.dtype));
  const std::int64_t heads =
      layout.head_stride == 0 ? std::min<std::int64_t>(layout.heads, 1) : layout.heads;
  if (heads > 1 ? layout.row_stride != heads * layout.dim : layout.row_stride != layout.dim) {
    fill_poison(buffer.bytes(), layout.dtype, source.poison().poison, Region::unreferenced);
  }
  for (std::int64_t row = 0; row < layout.rows; ++row) {
    for (std::int64_t head = 0; head < heads; ++head) {
      write(row, head,
            std::span(buffer.data() + layout.offset(row, head) * bytes,
                      static_cast<std::size_t>(layout.dim * bytes)));
    }
  }
  buffer.seal();
  return buffer;
}

}  // namespace

GuardedBuffer make_q(const TensorSource& source, const TensorMeta& meta) {
  return input_rows(source, row_layout(meta, "q"),
                    [&](std::int64_t row, std::int64_t head, std::span<std::byte> out) {
                      source.q_row(row, head, out);
                    });
}

GuardedBuffer make_new_kv(const TensorSource& source, const TensorMeta& meta, bool half_is_v) {
  const RowLayout layout = row_layout(meta, half_is_v ? "new v" : "new k");
  const std::int64_t kv_heads = source.problem().model.num_kv_heads;
  const std::int64_t copies = std::max<std::int64_t>(1, layout.heads / kv_heads);
  return input_rows(source, layout,
                    [&](std::int64_t row, std::int64_t head, std::span<std::byte> out) {
                      // Padding: a sequence no request has (theirs are >= 0).
                      const ContentKey key = source.token_of_row(row).value_or(ContentKey{-2, row});
                      const std::int64_t kv_head = std::min(head / copies, kv_heads - 1);
                      half_is_v ? source.v_row(key, kv_head, out) : source.k_row(key, kv_head, out);
                    });
}

GuardedBuffer make_sinks(const TensorSource& source, const TensorMeta& meta) {
  if (meta.shape.size() != 1 || !is_floating(meta.dtype)) {
    throw std::invalid_argument("sinks: must have one dimension and a floating dtype");
  }
  const RowLayout layout = {meta.dtype, meta.shape[0], 1, 1, meta.stride(0), 1};
  return input_rows(source, layout, [&](std::int64_t head, std::int64_t, std::span<std::byte> out) {
    store(out.data(), meta.dtype, encode(meta.dtype, source.sink(head)));
  });
}

GuardedBuffer make_output(const TensorMeta& meta, int variant) {
  GuardedBuffer buffer(row_layout(meta, "out").span_bytes());
  const std::size_t step = size_bytes(meta.dtype);
  for (std::size_t at = 0; at < buffer.size(); at += step) {
    store(buffer.data() + at, meta.dtype, sentinel_bits(meta.dtype, variant));
  }
  return buffer;
}

Output read_output(const GuardedBuffer& buffer, const TensorMeta& meta, int variant) {
  const RowLayout layout = row_layout(meta, "out");
  Output out;
  out.rows = layout.rows;
  out.heads = layout.heads;
  out.dim = layout.dim;
  out.values.reserve(static_cast<std::size_t>(layout.rows * layout.heads * layout.dim));
  const std::uint32_t sentinel = sentinel_bits(meta.dtype, variant);
  const std::size_t step = size_bytes(meta.dtype);
  for (std::int64_t row = 0; row < layout.rows; ++row) {
    for (std::int64_t head = 0; head < layout.heads; ++head) {
      const std::byte* from =
          buffer.data() + static_cast<std::size_t>(layout.offset(row, head)) * step;
      bool untouched = true;
      for (std::int64_t d = 0; d < layout.dim; ++d, from += step) {
        const std::uint32_t bits = load(from, meta.dtype);
        untouched &= bits == sentinel;
        out.values.push_back(decode(meta.dtype, bits));
      }
      out.untouched.push_back(untouched ? 1 : 0);
    }
  }
  return out;
}

std::optional<std::string> output_damage(const GuardedBuffer& buffer, const TensorMeta& meta,
                                         int variant) {
  if (auto damage = buffer.damage()) return damage;
  const RowLayout layout = row_layout(meta, "out");
  const std::size_t step = size_bytes(meta.dtype);
  std::vector<bool> inside(buffer.size() / step);
  for (std::int64_t row = 0; row < layout.rows; ++row) {
    for (std::int64_t head = 0; head < layout.heads; ++head) {
      const auto first = inside.begin() + layout.offset(row, head);
      std::fill(first, first + layout.dim, true);
    }
  }
  const std::uint32_t sentinel = sentinel_bits(meta.dtype, variant);
  for (std::size_t at = 0; at < inside.size(); ++at) {
    if (inside[at] || load(buffer.data() + at * step, meta.dtype) == sentinel) continue;
    return "element " + std::to_string(at) + " between rows of the output was overwritten";
  }
  return std::nullopt;
}

}  // namespace attest
