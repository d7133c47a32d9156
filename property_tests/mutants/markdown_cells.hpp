#pragma once

#include <string>
#include <vector>

#include "property_tests/mutants/detection.hpp"

namespace attest {

// Cells of the tables of docs/detection.md.

inline std::string keys_in_words(std::int64_t keys) {
  return keys < 1024 ? std::to_string(keys) : std::to_string(keys / 1024) + "k";
}

inline std::string rate(const Score& score) {
  if (score.counted() == 0) return "-";
  return std::to_string(score.killed) + " of " + std::to_string(score.counted());
}

inline std::string row(const std::vector<std::string>& cells) {
  std::string line = "|";
  for (const std::string& cell : cells) line += ' ' + cell + " |";
  return line + '\n';
}

inline std::string rule_line(std::size_t cells) {
  std::string line = "|";
  for (std::size_t i = 0; i < cells; ++i) line += "---|";
  return line + '\n';
}

inline std::string escaped(std::string text) {
  for (std::size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2) {
    text.replace(at, 1, "\\|");
  }
  return text;
}

}  // namespace attest
