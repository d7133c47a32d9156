#include "contracts/address_interval.hpp"

#include <algorithm>
#include <array>

namespace attest {
namespace {

constexpr std::array boundaries = {Boundary{31, OffsetUnit::bytes}, Boundary{32, OffsetUnit::bytes},
                                   Boundary{31, OffsetUnit::elements},
                                   Boundary{32, OffsetUnit::elements}};

std::string in_words(const AddressInterval& interval, const Boundary& boundary) {
  switch (side_of(interval, boundary)) {
    case Side::below:
      return "below " + name(boundary);
    case Side::straddling:
      return "across " + name(boundary);
    case Side::above:
      return "past " + name(boundary);
  }
  return "";
}

}  // namespace

std::string_view name(OffsetUnit unit) { return unit == OffsetUnit::bytes ? "bytes" : "elements"; }

std::span<const Boundary> all_boundaries() { return boundaries; }

std::string name(const Boundary& boundary) {
  return "2^" + std::to_string(boundary.bits) + " " + std::string(name(boundary.unit));
}

std::string_view name(Side side) {
  switch (side) {
    case Side::below:
      return "below";
    case Side::straddling:
      return "straddling";
    case Side::above:
      return "above";
  }
  return "";
}

Side side_of(const AddressInterval& interval, const Boundary& boundary) {
  const std::int64_t at = boundary.element(interval.element_bytes);
  if (interval.end <= at) return Side::below;
  return interval.first >= at ? Side::above : Side::straddling;
}

std::optional<std::string> not_reached(const Crossing& crossing, const Call& call) {
  const std::vector<AddressInterval> intervals = address_intervals(call);
  const auto of_operand = [&](const AddressInterval& i) { return i.operand == crossing.operand; };
  const auto found = std::find_if(intervals.begin(), intervals.end(), of_operand);
  const std::string aim =
      std::string(name(crossing.side)) + " " + name(crossing.boundary) + " in " + crossing.operand;
  if (found == intervals.end()) return "the case aims " + aim + ", which the call does not touch";
  const std::int64_t at = crossing.boundary.element(found->element_bytes);
  const bool near = found->end > at - just_below_bytes / found->element_bytes;
  const bool there = side_of(*found, crossing.boundary) == crossing.side;
  if (there && (near || crossing.side != Side::below)) return std::nullopt;
  return "the case aims " + aim + ", but the call touches " + to_string(*found);
}

std::string grouped(std::int64_t number) {
  std::string text = std::to_string(number);
  const std::size_t sign = number < 0 ? 1 : 0;
  for (std::size_t at = text.size(); at > sign + 3;) text.insert(at -= 3, ",");
  return text;
}

std::string to_string(const AddressInterval& interval) {
  std::string text = interval.operand + " bytes [" + grouped(interval.first_byte()) + ", " +
                     grouped(interval.end_byte()) + ")";
  if (interval.first < 0)
    text += ", before its first element (the metadata name a page, slot or row below 0)";
  // The largest boundary it reaches, and the next one, say where it lies.
  std::vector<std::string> words;
  for (const Boundary& boundary : boundaries) {
    const bool same = interval.element_bytes == 1 && boundary.unit == OffsetUnit::elements;
    if (same) continue;
    words.push_back(in_words(interval, boundary));
    if (side_of(interval, boundary) == Side::below) break;
  }
  for (std::size_t i = words.size() < 3 ? 0 : words.size() - 3; i < words.size(); ++i) {
    text += ", " + words[i];
  }
  return text;
}

}  // namespace attest
