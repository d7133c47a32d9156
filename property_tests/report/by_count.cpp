#include "property_tests/report/by_count.hpp"

#include <algorithm>

namespace attest {

std::vector<std::pair<std::string, std::int64_t>> by_count(
    const std::map<std::string, std::int64_t>& counts) {
  std::vector<std::pair<std::string, std::int64_t>> entries(counts.begin(), counts.end());
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  return entries;
}

}  // namespace attest
