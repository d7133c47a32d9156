#include "property_tests/report/numbers.hpp"

#include <array>
#include <cmath>
#include <cstdio>

namespace attest {
namespace {

std::string printed(const char* format, double value) {
  std::array<char, 64> buffer{};
  std::snprintf(buffer.data(), buffer.size(), format, value);
  return buffer.data();
}

std::string two_digits(std::int64_t value) {
  return (value < 10 ? "0" : "") + std::to_string(value);
}

}  // namespace

std::string short_number(double value) {
  const double size = std::fabs(value);
  if (!(size < 1e6)) return printed("%.3g", value);
  if (size >= 100) return printed("%.0f", value);
  if (size >= 10) return printed("%.1f", value);
  if (size >= 1) return printed("%.2f", value);
  return size > 0 ? printed("%.3g", value) : "0";
}

std::string duration(double seconds) {
  if (!(seconds >= 60)) return printed(seconds >= 10 ? "%.1f s" : "%.2f s", seconds);
  const auto whole = std::llround(seconds);
  if (whole < 3600) return std::to_string(whole / 60) + " min " + two_digits(whole % 60) + " s";
  return std::to_string(whole / 3600) + " h " + two_digits(whole % 3600 / 60) + " min";
}

std::string percent(double part, double whole) {
  if (!(whole > 0)) return "-";
  const double share = 100 * part / whole;
  if (share > 0 && share < 0.5) return "<1 %";
  return printed("%.0f %%", share);
}

std::string bytes_in_words(double bytes) {
  static constexpr std::array units = {"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < units.size()) {
    bytes /= 1024;
    ++unit;
  }
  return printed(bytes >= 100 || unit == 0 ? "%.0f " : "%.1f ", bytes) + units[unit];
}

std::string counted(std::int64_t count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

}  // namespace attest
