#include <cstring>

#include "memory/tensor_source.hpp"
#include "property_tests/bench/bench.hpp"

namespace attest {
namespace {

constexpr std::int64_t tokens = 8192;
constexpr std::int64_t dim = 128;

Problem long_sequence() {
  Problem problem;
  problem.model.head_dim = dim;
  problem.model.v_head_dim = dim;
  problem.pool.page_size = 64;
  problem.pool.num_pages = tokens / 64;
  problem.requests.push_back({.committed = tokens - 1, .new_tokens = 1});
  return problem;
}

/// Bytes per second of K rows in bf16, or decoded to double, one thread.
template <class Element>
double fill_rate(Recipe recipe, std::vector<Element>& row) {
  const TensorSource source(long_sequence(), recipe, 1);
  const double seconds = best_seconds(5, [&] {
    for (std::int64_t t = 0; t < tokens; ++t) {
      source.k_row(ContentKey{.position = t}, 0, std::span<Element>(row));
    }
  });
  return static_cast<double>(tokens) * static_cast<double>(row.size() * sizeof(Element)) / seconds;
}

/// memcpy of as many bytes as the bf16 fill writes, row by row from a row that stays in cache.
double copy_rate(std::size_t row_bytes) {
  std::vector<std::byte> from(row_bytes, std::byte{1});
  std::vector<std::byte> to(row_bytes * static_cast<std::size_t>(tokens));
  const double seconds = best_seconds(5, [&] {
    for (std::size_t t = 0; t < static_cast<std::size_t>(tokens); ++t) {
      std::memcpy(to.data() + t * row_bytes, from.data(), row_bytes);
    }
  });
  return static_cast<double>(to.size()) / seconds;
}

Measurement rate(std::string id, std::string says, double bytes_per_second) {
  return {.id = std::move(id),
          .says = std::move(says),
          .value = bytes_per_second / 1e9,
          .unit = "GB/s",
          .target = std::nullopt};
}

}  // namespace

std::vector<Measurement> measure_fills() {
  std::vector<std::byte> bits(2 * dim);
  std::vector<double> decoded(dim);
  const double normal = fill_rate(Recipe::normal, bits);
  const double recall = fill_rate(Recipe::recall, bits);
  const double doubles = fill_rate(Recipe::normal, decoded);
  const double copy = copy_rate(bits.size());
  const std::string rows = std::to_string(tokens) + " K rows of 128";
  return {rate("fills.normal", rows + " in bf16, recipe normal", normal),
          rate("fills.recall", rows + " in bf16, recipe recall", recall),
          rate("fills.decoded", rows + " as double, recipe normal", doubles),
          {.id = "fills.copy_ratio",
           .says = "memcpy of the same bytes over the bf16 normal fill",
           .value = copy / normal,
           .unit = "x",
           .target = std::nullopt}};
}

}  // namespace attest
