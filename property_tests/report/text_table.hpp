#pragma once

#include <string>
#include <vector>

namespace attest {

/// A table for people: columns as wide as their widest cell, two spaces apart. Cells may carry
/// terminal colours; those take no width.
class TextTable {
 public:
  enum class Align { left, right };
  struct Column {
    std::string title;
    Align align = Align::left;
  };

  explicit TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {}

  /// As many cells as columns; missing ones are empty.
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  bool empty() const { return rows_.empty(); }

  /// Title line (none when every title is empty) and rows, each ending in a newline and without
  /// trailing spaces.
  std::string str() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

/// Columns a terminal needs for `text`: UTF-8 code points, colour sequences left out.
std::size_t display_width(const std::string& text);

}  // namespace attest
