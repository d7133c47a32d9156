#include "property_tests/lattice_screen.hpp"

#include "contracts/address_interval.hpp"
#include "property_tests/report/text_table.hpp"

namespace attest {
namespace {

constexpr std::array sides = {Side::below, Side::straddling, Side::above};
/// Of the cells that were not judged, this many are named.
constexpr std::size_t most_named = 10;

}  // namespace

void LatticeScreen::begins(const Backend& backend, std::int64_t) {
  backends_.emplace_back(backend.name());
}

void LatticeScreen::judged(const CaseResult& result, const BackendTally&) {
  // "k above 2^31 bytes, page_ids, ...": LargeKvCell::name().
  const std::string aim = result.name.substr(0, result.name.find(','));
  const Verdict verdict = result.judgement.verdict;
  for (std::size_t i = 0; i < sides.size(); ++i) {
    const std::string word = " " + std::string(name(sides[i])) + " ";
    const std::size_t at = aim.find(word);
    if (at == std::string::npos) continue;
    const std::string row = aim.substr(0, at) + ", " + aim.substr(at + word.size());
    Count& count = counts_[result.judgement.backend][row][i];
    ++count.judged;
    count.passed += verdict == Verdict::pass ? 1 : 0;
  }
  if (verdict == Verdict::pass || is_failure(verdict)) return;
  not_judged_.push_back(result.judgement.backend + "  " + result.name + "  " +
                        std::string(name(verdict)) + ": " + result.judgement.reason);
}

std::string LatticeScreen::text() const {
  if (counts_.empty()) return "";
  using enum TextTable::Align;
  TextTable table({{"passed of judged", left},
                   {"offset", left},
                   {"below", right},
                   {"straddling", right},
                   {"above", right}});
  for (const std::string& backend : backends_) {
    const auto of = counts_.find(backend);
    if (of == counts_.end()) continue;
    for (const auto& [row, by_side] : of->second) {
      std::vector<std::string> cells = {backend, row};
      for (const Count& count : by_side) {
        const std::string all = std::to_string(count.judged);
        cells.push_back(count.judged == 0 ? "-" : std::to_string(count.passed) + "/" + all);
      }
      table.add(std::move(cells));
    }
  }
  std::string text = "\n" + table.str();
  if (!not_judged_.empty()) text += "\nRequired cells that were not judged:\n";
  for (std::size_t i = 0; i < not_judged_.size() && i < most_named; ++i) {
    text += "  " + not_judged_[i] + "\n";
  }
  if (not_judged_.size() > most_named) {
    text += "  and " + std::to_string(not_judged_.size() - most_named) + " more\n";
  }
  return text;
}

}  // namespace attest
