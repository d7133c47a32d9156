#include "property_tests/report/near_names.hpp"

#include <algorithm>

namespace attest {
namespace {

/// Optimal string alignment distance.
std::size_t edits(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
      }
    }
  }
  return d[a.size()][b.size()];
}

}  // namespace

std::vector<std::string> near_names(std::string_view text,
                                    std::span<const std::string> candidates) {
  if (text.empty() || text.size() > 200) return {};
  std::vector<std::pair<std::size_t, std::string>> ranked;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edits(text, candidate);
    const std::size_t allowed = 1 + std::min(text.size(), candidate.size()) / 4;
    const bool contains = text.size() >= 3 && candidate.find(text) != std::string::npos;
    if (distance <= allowed || contains) ranked.emplace_back(distance, candidate);
  }
  std::sort(ranked.begin(), ranked.end());
  std::vector<std::string> names;
  for (const auto& [distance, candidate] : ranked) {
    if (names.size() < 3) names.push_back(candidate);
  }
  return names;
}

std::string did_you_mean(std::string_view text, std::span<const std::string> candidates) {
  const std::vector<std::string> names = near_names(text, candidates);
  if (names.empty()) return "";
  std::string words = "; did you mean ";
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) words += i + 1 == names.size() ? " or " : ", ";
    words += names[i];
  }
  return words + "?";
}

}  // namespace attest
