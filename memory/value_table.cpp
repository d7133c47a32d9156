#include "memory/value_table.hpp"

#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>

namespace attest {
namespace {

constexpr std::size_t distributions = 6;

/// All exact in float, the multiples of a quantile aside, which are rounded once more.
float value_of(std::size_t i, Distribution distribution) {
  const auto number = static_cast<int>(i);
  switch (distribution) {
    case Distribution::normal_20:
      return normal_table(Dtype::f32).values[i] * 20;
    case Distribution::uniform:
      return static_cast<float>(2 * number + 1) / 4096 - 1;
    case Distribution::positive:
      return static_cast<float>(2 * number + 1) / 8192;
    case Distribution::small_int:
      return static_cast<float>(number % 9 - 4);
    case Distribution::sparse_int:
      return number % 4 == 0 ? static_cast<float>(number / 4 % 9 - 4) : 0;
    default:
      return normal_table(Dtype::f32).values[i];
  }
}

std::unique_ptr<const NormalTable> build(Dtype dtype, Distribution distribution) {
  auto table = std::make_unique<NormalTable>();
  for (std::size_t i = 0; i < normal_entries; ++i) {
    table->set(i, dtype, encode(dtype, value_of(i, distribution)));
  }
  return table;
}

}  // namespace

const NormalTable& value_table(Dtype dtype, Distribution distribution) {
  if (distribution == Distribution::normal) return normal_table(dtype);
  if (!is_floating(dtype)) {
    throw std::invalid_argument("value_table: no table of " + std::string(name(dtype)));
  }
  struct Slot {
    std::once_flag once;
    std::unique_ptr<const NormalTable> table;
  };
  static std::array<Slot, 5 * distributions> slots;  // five floating dtypes
  Slot& slot = slots[static_cast<std::size_t>(dtype) * distributions +
                     static_cast<std::size_t>(distribution)];
  std::call_once(slot.once, [&] { slot.table = build(dtype, distribution); });
  return *slot.table;
}

}  // namespace attest
