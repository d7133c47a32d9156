#include "property_tests/report/text_table.hpp"

#include <algorithm>

namespace attest {
namespace {

std::string padded(const std::string& text, std::size_t width, TextTable::Align align) {
  const std::size_t used = display_width(text);
  const std::string space(width > used ? width - used : 0, ' ');
  return align == TextTable::Align::left ? text + space : space + text;
}

void append_line(std::string& out, const std::vector<std::string>& cells,
                 const std::vector<TextTable::Column>& columns,
                 const std::vector<std::size_t>& widths) {
  std::string line;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (i > 0) line += "  ";
    line += padded(i < cells.size() ? cells[i] : std::string(), widths[i], columns[i].align);
  }
  line.erase(line.find_last_not_of(' ') + 1);
  out += line + "\n";
}

}  // namespace

std::size_t display_width(const std::string& text) {
  std::size_t width = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x1b') {
      while (i < text.size() && text[i] != 'm') ++i;
      continue;
    }
    if ((static_cast<unsigned char>(text[i]) & 0xC0U) != 0x80U) ++width;
  }
  return width;
}

std::string TextTable::str() const {
  std::vector<std::size_t> widths;
  std::vector<std::string> titles;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    std::size_t width = display_width(columns_[i].title);
    for (const auto& row : rows_) {
      if (i < row.size()) width = std::max(width, display_width(row[i]));
    }
    widths.push_back(width);
    titles.push_back(columns_[i].title);
  }
  std::string out;
  const bool titled =
      std::any_of(titles.begin(), titles.end(), [](const auto& t) { return !t.empty(); });
  if (titled) append_line(out, titles, columns_, widths);
  for (const auto& row : rows_) append_line(out, row, columns_, widths);
  return out;
}

}  // namespace attest
