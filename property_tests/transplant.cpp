#include "property_tests/transplant.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <variant>

#include "contracts/byte_overlap.hpp"
#include "contracts/call_fields.hpp"

namespace attest {
namespace {

/// a + (b - c) without undefined overflow: hostile captures hold any integer.
std::int64_t shifted(std::int64_t a, std::int64_t b, std::int64_t c) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b) -
                                   static_cast<std::uint64_t>(c));
}

using Shape = std::vector<std::int64_t>;

/// Sizes that differ from the right ones differ by as much; another rank stays as it was called.
Shape moved_shape(const Shape& got, const Shape& right, const Shape& onto) {
  if (got.size() != right.size() || got.size() != onto.size()) return got;
  Shape shape;
  for (std::size_t d = 0; d < got.size(); ++d) {
    shape.push_back(std::max<std::int64_t>(0, shifted(onto[d], got[d], right[d])));
  }
  return shape;
}

TensorMeta moved(const TensorMeta& got, const TensorMeta& right, const TensorMeta& onto,
                 Transplant) {
  TensorMeta meta = onto;
  if (got.dtype != right.dtype) meta.dtype = got.dtype;
  meta.shape = moved_shape(got.shape, right.shape, onto.shape);
  const bool dense = got.strides == contiguous(got.dtype, got.shape).strides;
  if (got.strides != right.strides || meta.shape.size() != onto.strides.size()) {
    meta.strides = dense ? contiguous(meta.dtype, meta.shape).strides : got.strides;
  }
  if (got.storage != right.storage) meta.storage = got.storage;
  if (got.storage_offset != right.storage_offset) meta.storage_offset = got.storage_offset;
  if (got.storage_bytes != right.storage_bytes) meta.storage_bytes = got.storage_bytes;
  return meta;
}

/// A view of an array's entries as rows and columns; one dimension is one row.
struct Grid {
  const IntArray& array;
  std::int64_t rows() const { return array.meta.shape.size() == 2 ? array.meta.shape[0] : 1; }
  std::int64_t columns() const {
    return array.meta.shape.size() == 2 ? array.meta.shape[1]
                                        : static_cast<std::int64_t>(array.values.size());
  }
  std::optional<std::int64_t> at(std::int64_t row, std::int64_t column) const {
    if (row < 0 || column < 0 || row >= rows() || column >= columns()) return std::nullopt;
    return array.values[static_cast<std::size_t>(row * columns() + column)];
  }
};

bool is_plain(const IntArray& array) {
  return array.recorded && array.meta.shape.size() >= 1 && array.meta.shape.size() <= 2 &&
         array.numel() == static_cast<std::int64_t>(array.values.size());
}

std::int64_t first_difference(const IntArray& got, const IntArray& right) {
  const std::size_t both = std::min(got.values.size(), right.values.size());
  for (std::size_t i = 0; i < both; ++i) {
    if (got.values[i] != right.values[i]) return shifted(0, got.values[i], right.values[i]);
  }
  return 0;
}

IntArray moved(const IntArray& got, const IntArray& right, const IntArray& onto, Transplant how) {
  constexpr std::int64_t most_entries = std::int64_t{1} << 20;
  if (!is_plain(got) || !is_plain(right) || !is_plain(onto)) return got;
  if (got.meta.shape.size() != onto.meta.shape.size() ||
      right.meta.shape.size() != got.meta.shape.size()) {
    return got;
  }
  IntArray result;
  result.meta = moved(got.meta, right.meta, onto.meta, how);
  std::int64_t entries = 1;
  for (const std::int64_t size : result.meta.shape) {
    if (__builtin_mul_overflow(entries, size, &entries) || entries > most_entries) return got;
  }
  const Grid from{got}, spec{right}, base{onto};
  const std::int64_t rows = result.meta.shape.size() == 2 ? result.meta.shape[0] : 1;
  const std::int64_t columns = result.meta.shape.back();
  const bool back = how == Transplant::from_the_back;
  const std::int64_t row_shift = back ? from.rows() - rows : 0;
  const std::int64_t column_shift = back && rows == 1 ? from.columns() - columns : 0;
  const std::int64_t everywhere = first_difference(got, right);
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < columns; ++column) {
      const auto was = from.at(row + row_shift, column + column_shift);
      const auto should = spec.at(row + row_shift, column + column_shift);
      const auto is = base.at(row, column);
      if (!is) {
        result.values.push_back(was.value_or(0));
      } else if (how == Transplant::everywhere) {
        result.values.push_back(shifted(*is, everywhere, 0));
      } else {
        result.values.push_back(was && should ? shifted(*is, *was, *should) : *is);
      }
    }
  }
  return result;
}

std::int64_t moved(std::int64_t got, std::int64_t right, std::int64_t onto, Transplant how) {
  return how == Transplant::everywhere ? got : shifted(onto, got, right);
}

/// Flags, factors, words, pairs and launches: as they were called.
template <class T>
T moved(const T& got, const T&, const T&, Transplant) {
  return got;
}

template <class T>
std::optional<T> moved(const std::optional<T>& got, const std::optional<T>& right,
                       const std::optional<T>& onto, Transplant how) {
  if (!got || !right || !onto) return got;
  return moved(*got, *right, *onto, how);
}

template <class CallType>
Call transplanted(const CallType& got, const CallType& right, const CallType& onto,
                  const std::set<std::string_view>& kept, Transplant how) {
  CallType call = onto;
  const auto carry = [&](const auto& field) {
    if (!kept.contains(field.key) || got.*(field.member) == right.*(field.member)) return;
    call.*(field.member) =
        moved(got.*(field.member), right.*(field.member), onto.*(field.member), how);
  };
  std::apply([&](const auto&... fields) { (carry(fields), ...); }, call_fields<CallType>);
  return call;
}

using Integers = std::vector<std::int64_t>;

/// Those of `moved` that are not `onto`'s; the others are a right call's.
Integers changed(const Integers& moved, const Integers& onto) {
  if (moved.size() != onto.size()) return moved;
  Integers entries;
  for (std::size_t i = 0; i < moved.size(); ++i) {
    if (moved[i] != onto[i]) entries.push_back(moved[i]);
  }
  return entries;
}

bool keep_signs(const Integers& got, const Integers& moved, const Integers& onto) {
  const Integers entries = changed(moved, onto);
  if (got.empty() || entries.empty()) return true;
  const std::int64_t least = *std::min_element(got.begin(), got.end());
  return least < 0 || *std::min_element(entries.begin(), entries.end()) >= (least > 0 ? 1 : 0);
}

bool keep_signs(std::int64_t got, std::int64_t moved, std::int64_t onto) {
  return keep_signs(Integers{got}, Integers{moved}, Integers{onto});
}

bool keep_signs(const TensorMeta& got, const TensorMeta& moved, const TensorMeta& onto) {
  return keep_signs(got.shape, moved.shape, onto.shape);
}

bool keep_signs(const IntArray& got, const IntArray& moved, const IntArray& onto) {
  return keep_signs(got.meta, moved.meta, onto.meta) &&
         keep_signs(got.values, moved.values, onto.values);
}

/// Flags, factors, words, pairs and launches are as they were called.
template <class T>
bool keep_signs(const T&, const T&, const T&) {
  return true;
}

template <class T>
bool keep_signs(const std::optional<T>& got, const std::optional<T>& moved,
                const std::optional<T>& onto) {
  return !got || !moved || !onto || keep_signs(*got, *moved, *onto);
}

}  // namespace

bool keeps_signs(const Call& got, const Call& moved, const Call& onto) {
  return std::visit(
      [&](const auto& called) {
        using CallType = std::decay_t<decltype(called)>;
        const auto* const now = std::get_if<CallType>(&moved);
        const auto* const right = std::get_if<CallType>(&onto);
        bool keeps = true;
        const auto look = [&](const auto& field) {
          if (now == nullptr || right == nullptr) return;
          keeps = keeps &&
                  keep_signs(called.*(field.member), now->*(field.member), right->*(field.member));
        };
        std::apply([&](const auto&... fields) { (look(fields), ...); }, call_fields<CallType>);
        return keeps;
      },
      got);
}

Call transplanted(const Call& got, const Call& right, const Call& onto,
                  const std::set<std::string_view>& kept, Transplant how) {
  return std::visit(
      [&](const auto& call) -> Call {
        using CallType = std::decay_t<decltype(call)>;
        const auto* const spec = std::get_if<CallType>(&right);
        const auto* const base = std::get_if<CallType>(&onto);
        return spec && base ? transplanted(call, *spec, *base, kept, how) : onto;
      },
      got);
}

std::vector<std::string_view> differing_fields(const Call& a, const Call& b) {
  std::vector<std::string_view> fields;
  std::visit(
      [&](const auto& one) {
        using CallType = std::decay_t<decltype(one)>;
        const auto* const other = std::get_if<CallType>(&b);
        const auto compare = [&](const auto& field) {
          if (!other || !(one.*(field.member) == other->*(field.member))) {
            fields.push_back(field.key);
          }
        };
        std::apply([&](const auto&... each) { (compare(each), ...); }, call_fields<CallType>);
      },
      a);
  return fields;
}

}  // namespace attest
