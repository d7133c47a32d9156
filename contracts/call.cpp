#include "contracts/call.hpp"

#include <stdexcept>

#include "contracts/capped_product.hpp"

namespace attest {
namespace {

constexpr std::array<std::string_view, all_signatures.size()> signature_names = {
    "unified",       "extend",       "decode",        "mla_decode",
    "batch_prefill", "paged_ragged", "legacy_extend", "vllm_cpu"};

/// Elements; far past every memory, and their bytes still fit.
constexpr std::int64_t farthest = std::int64_t{1} << 58;

}  // namespace

TensorMeta contiguous(Dtype dtype, std::vector<std::int64_t> shape) {
  TensorMeta meta;
  meta.dtype = dtype;
  meta.strides.resize(shape.size());
  std::int64_t step = 1;
  for (std::size_t d = shape.size(); d-- > 0;) {
    meta.strides[d] = step;
    step = capped_product(step, shape[d], farthest);
  }
  meta.storage_bytes = step * static_cast<std::int64_t>(size_bytes(dtype));
  meta.shape = std::move(shape);
  return meta;
}

std::int64_t IntArray::numel() const {
  std::int64_t count = 1;
  for (const std::int64_t extent : meta.shape) {
    // A hostile shape must not overflow; no array has this many entries.
    if (extent < 0 || __builtin_mul_overflow(count, extent, &count)) return -1;
  }
  return count;
}

IntArray int_array(Dtype dtype, std::vector<std::int64_t> values) {
  const auto count = static_cast<std::int64_t>(values.size());
  return {contiguous(dtype, {count}), std::move(values), true};
}

IntArray int_matrix(Dtype dtype, std::int64_t rows, std::int64_t cols,
                    std::vector<std::int64_t> values) {
  if (static_cast<std::int64_t>(values.size()) != rows * cols) {
    throw std::invalid_argument("int_matrix: " + std::to_string(values.size()) + " values for " +
                                std::to_string(rows) + " x " + std::to_string(cols));
  }
  return {contiguous(dtype, {rows, cols}), std::move(values), true};
}

Signature signature_of(const Call& call) { return all_signatures[call.index()]; }

std::string_view name(Signature signature) {
  return signature_names[static_cast<std::size_t>(signature)];
}

std::optional<Signature> signature_from_name(std::string_view text) {
  for (const Signature signature : all_signatures) {
    if (text == name(signature)) return signature;
  }
  return std::nullopt;
}

}  // namespace attest
