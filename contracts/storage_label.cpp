#include "contracts/storage_label.hpp"

#include <charconv>
#include <memory>
#include <system_error>

namespace attest {
namespace {

bool is_hexadecimal(std::string_view label) {
  return label.starts_with("0x") || label.starts_with("0X");
}

constexpr std::uint64_t first_mapped = 4096;

}  // namespace

std::optional<std::uint64_t> number_of_label(std::string_view label) {
  const bool hexadecimal = is_hexadecimal(label);
  const std::string_view digits = hexadecimal ? label.substr(2) : label;
  const char* const end = std::to_address(digits.end());
  std::uint64_t value = 0;
  const auto [stop, error] =
      std::from_chars(std::to_address(digits.begin()), end, value, hexadecimal ? 16 : 10);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

bool is_address(std::string_view label) {
  const std::optional<std::uint64_t> number = number_of_label(label);
  return number && (is_hexadecimal(label) || *number >= first_mapped);
}

bool same_storage(std::string_view a, std::string_view b) {
  if (a.empty() || b.empty()) return false;
  if (a == b) return true;
  const std::optional<std::uint64_t> number = number_of_label(a);
  return number && number == number_of_label(b);
}

}  // namespace attest
