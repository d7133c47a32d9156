#include "memory/fill.hpp"

#include <stdexcept>
#include <string>

#include "memory/normal_table.hpp"

namespace attest {
namespace {

/// Calls visit(Element) with the unsigned type of one element of `dtype`.
template <class Visit>
void with_element(Dtype dtype, Visit&& visit) {
  switch (size_bytes(dtype)) {
    case 1:
      return visit(std::uint8_t{});
    case 2:
      return visit(std::uint16_t{});
    default:
      return visit(std::uint32_t{});
  }
}

void gather_decoded(std::uint64_t key, const float* table, std::byte* out, std::int64_t count) {
  std::int64_t d = 0;
  for (; d + elements_per_hash <= count; d += elements_per_hash) {
    const std::uint64_t hash = block_hash(key, d / elements_per_hash);
    const double four[elements_per_hash] = {table[lane_index(hash, 0)], table[lane_index(hash, 1)],
                                            table[lane_index(hash, 2)], table[lane_index(hash, 3)]};
    std::memcpy(out + static_cast<std::size_t>(d) * sizeof(double), four, sizeof four);
  }
  for (; d < count; ++d) {
    const double value = table[normal_index(key, d)];
    std::memcpy(out + static_cast<std::size_t>(d) * sizeof(double), &value, sizeof value);
  }
}

[[noreturn]] void wrong_length(const char* what, std::size_t got, std::int64_t expected) {
  throw std::invalid_argument(std::string(what) + ": destination holds " + std::to_string(got) +
                              " bytes, the row has " + std::to_string(expected));
}

}  // namespace

namespace {

void gather(const RowOut& out, Dtype dtype, std::uint64_t key, const NormalTable& table) {
  if (out.decoded) return gather_decoded(key, table.values.data(), out.data, out.count);
  switch (size_bytes(dtype)) {
    case 1:
      return gather_normal(key, table.bits8.data(), out.data, out.count);
    case 2:
      return gather_normal(key, table.bits16.data(), out.data, out.count);
    default:
      return gather_normal(key, table.bits32.data(), out.data, out.count);
  }
}

}  // namespace

void write_normal(const RowOut& out, Dtype dtype, std::uint64_t key, int exponent) {
  gather(out, dtype, key, normal_table(dtype, exponent));
}

void write_values(const RowOut& out, Dtype dtype, std::uint64_t key, Distribution distribution) {
  gather(out, dtype, key, value_table(dtype, distribution));
}

void write_signs(const RowOut& out, Dtype dtype, std::uint64_t key, float amplitude,
                 std::int64_t first) {
  if (out.decoded) {
    const double value = amplitude;
    return fill_signs(key, value, -value, out.data, first, out.count);
  }
  with_element(dtype, [&](auto element) {
    using Element = decltype(element);
    fill_signs(key, static_cast<Element>(encode(dtype, amplitude)),
               static_cast<Element>(encode(dtype, -amplitude)), out.data, first, out.count);
  });
}

void write_signs_of_normal(const RowOut& out, Dtype dtype, std::uint64_t key, float amplitude) {
  const auto write = [&](auto plus, auto minus) {
    for (std::int64_t d = 0; d < out.count; ++d) {
      // The table ascends and has no zero at exponent 0: its lower half is the negative one.
      const auto value = normal_index(key, d) < normal_entries / 2 ? minus : plus;
      std::memcpy(out.data + static_cast<std::size_t>(d) * sizeof value, &value, sizeof value);
    }
  };
  if (out.decoded) return write(static_cast<double>(amplitude), -static_cast<double>(amplitude));
  with_element(dtype, [&](auto element) {
    using Element = decltype(element);
    write(static_cast<Element>(encode(dtype, amplitude)),
          static_cast<Element>(encode(dtype, -amplitude)));
  });
}

void write_element(const RowOut& out, Dtype dtype, std::int64_t at, float value) {
  if (at < 0 || at >= out.count) return;
  const auto write = [&](auto element) {
    std::memcpy(out.data + static_cast<std::size_t>(at) * sizeof element, &element, sizeof element);
  };
  if (out.decoded) return write(static_cast<double>(value));
  with_element(dtype,
               [&](auto element) { write(static_cast<decltype(element)>(encode(dtype, value))); });
}

RowOut row_of_bits(std::span<std::byte> bytes, Dtype dtype, std::int64_t count, const char* what) {
  const std::int64_t expected = count * static_cast<std::int64_t>(size_bytes(dtype));
  if (static_cast<std::int64_t>(bytes.size()) != expected) {
    wrong_length(what, bytes.size(), expected);
  }
  return {bytes.data(), count, false};
}

RowOut row_of_doubles(std::span<double> values, std::int64_t count, const char* what) {
  const auto expected = count * static_cast<std::int64_t>(sizeof(double));
  if (static_cast<std::int64_t>(values.size()) != count) {
    wrong_length(what, values.size_bytes(), expected);
  }
  return {reinterpret_cast<std::byte*>(values.data()), count, true};
}

}  // namespace attest
