#include "backends/hip/inspect/llvm_function.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <optional>

namespace attest::hip {
namespace {

bool in_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_' || c == '$' ||
         c == '-';
}

/// Words that may stand between an opcode and its type.
constexpr std::array flags = {"nuw",  "nsw",      "exact",    "disjoint", "nneg",     "inbounds",
                              "nusw", "volatile", "samesign", "fast",     "contract", "atomic"};

/// The name that begins at `at`, quotes included.
std::string name_at(std::string_view text, std::size_t at) {
  std::size_t end = at + 1;
  if (end < text.size() && text[end] == '"') {
    end = text.find('"', end + 1);
    return std::string(text.substr(at, end == std::string_view::npos ? end : end + 1 - at));
  }
  while (end < text.size() && in_name(text[end])) ++end;
  return std::string(text.substr(at, end - at));
}

/// All names in `text`; those of types and labels are left out.
std::vector<std::string> names_in(std::string_view text) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < text.size();) {
    if (text[i] != '%' && text[i] != '@') {
      ++i;
      continue;
    }
    const std::string name = name_at(text, i);
    const bool label = i >= 6 && text.substr(i - 6, 6) == "label ";
    const bool type = name.starts_with("%\"struct.") || name.starts_with("%\"class.") ||
                      name.starts_with("%struct.") || name.starts_with("%class.");
    if (!label && !type) names.push_back(name);
    i += name.size();
  }
  return names;
}

std::optional<int> number_after(std::string_view text, std::string_view before) {
  const std::size_t at = text.find(before);
  if (at == std::string_view::npos) return std::nullopt;
  int number = 0;
  const std::string_view digits = text.substr(at + before.size());
  const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (result.ec != std::errc()) return std::nullopt;
  return number;
}

std::string_view first_word(std::string_view& rest) {
  while (rest.starts_with(' ')) rest.remove_prefix(1);
  const std::size_t end = std::min(rest.find(' '), rest.size());
  const std::string_view word = rest.substr(0, end);
  rest.remove_prefix(end);
  return word;
}

/// Bits of the type at the front: "i64", "<2 x i32>"; 0 for anything else.
int width_of(std::string_view type) {
  while (type.starts_with(' ')) type.remove_prefix(1);
  if (type.starts_with('<')) {
    const std::size_t by = type.find(" x ");
    type = by == std::string_view::npos ? std::string_view() : type.substr(by + 3);
  }
  if (!type.starts_with('i')) return 0;
  return number_after(type.substr(0, 5), "i").value_or(0);
}

/// Integer constants that stand as operands: after "iN " or after a comma.
std::vector<std::string> literals_in(std::string_view text) {
  std::vector<std::string> found;
  for (std::size_t i = 1; i < text.size(); ++i) {
    const bool digit = std::isdigit(static_cast<unsigned char>(text[i])) != 0 || text[i] == '-';
    if (!digit || text[i - 1] != ' ') continue;
    std::size_t end = i + 1;
    while (end < text.size() && std::isdigit(static_cast<unsigned char>(text[end])) != 0) ++end;
    const bool alone =
        end == text.size() || text[end] == ',' || text[end] == ')' || text[end] == '>';
    if (alone) found.emplace_back(text.substr(i, end - i));
    i = end;
  }
  return found;
}

/// "[ %a, %block ], [ 7, %other ]": the values only.
std::vector<std::string> phi_values(std::string_view text) {
  std::vector<std::string> values;
  for (std::size_t at = text.find('['); at != std::string_view::npos; at = text.find('[', at + 1)) {
    const std::size_t comma = text.find(',', at);
    for (std::string& name : names_in(text.substr(at, comma - at)))
      values.push_back(std::move(name));
  }
  return values;
}

void read_operands(Instruction& it, std::string_view rest) {
  it.literals = literals_in(rest);
  if (it.opcode == "phi") {
    it.operands = phi_values(rest);
    return;
  }
  if (it.opcode == "call") {
    const std::vector<std::string> names = names_in(rest);
    const auto callee = std::find_if(names.begin(), names.end(),
                                     [](const std::string& name) { return name[0] == '@'; });
    if (callee != names.end()) it.callee = *callee;
    it.operands = names_in(rest.substr(std::min(rest.find('('), rest.size())));
    return;
  }
  it.operands = names_in(rest);
  if (it.opcode == "select" && it.operands.size() == 3) it.operands.erase(it.operands.begin());
}

/// Debug locations name metadata; the file's "!7 = !DILocation(line: 38, ..." lines say which line.
using Locations = std::map<int, int>;

}  // namespace

Instruction read_instruction(std::string_view line, std::string& name) {
  Instruction it;
  name.clear();
  if (!line.starts_with("  ")) return it;
  it.line = number_after(line, "!dbg !").value_or(0);
  std::string_view rest = line.substr(0, line.find(", !"));
  const std::size_t comment = rest.find(" ;");
  rest = rest.substr(0, comment);
  std::string_view word = first_word(rest);
  if (word.starts_with('%')) {
    name = std::string(word);
    if (first_word(rest) != "=") return it;
    word = first_word(rest);
  }
  if (word == "tail" || word == "notail" || word == "musttail") word = first_word(rest);
  it.opcode = std::string(word);
  while (true) {
    std::string_view after = rest;
    const std::string_view flag = first_word(after);
    if (std::find(flags.begin(), flags.end(), flag) == flags.end()) break;
    rest = after;
  }
  it.width = width_of(rest);
  read_operands(it, rest);
  return it;
}

std::vector<LlvmFunction> read_llvm(std::istream& text) {
  std::vector<LlvmFunction> functions;
  Locations locations;
  bool inside = false;
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with("define ")) {
      const std::size_t at = line.find('@');
      LlvmFunction function;
      function.name = name_at(line, at).substr(1);
      const std::size_t open = line.find('(', at);
      function.parameters = names_in(std::string_view(line).substr(open));
      functions.push_back(std::move(function));
      inside = true;
    } else if (line == "}") {
      inside = false;
    } else if (inside) {
      std::string name;
      Instruction it = read_instruction(line, name);
      if (it.opcode.empty()) continue;
      if (name.empty()) {
        functions.back().effects.push_back(std::move(it));
      } else {
        functions.back().values[name] = std::move(it);
      }
    } else if (line.find("!DILocation(line: ") != std::string::npos) {
      locations[number_after(line, "!").value_or(0)] = number_after(line, "(line: ").value_or(0);
    }
  }
  for (LlvmFunction& function : functions) {
    for (auto& [name, it] : function.values) it.line = locations[it.line];
    for (Instruction& it : function.effects) it.line = locations[it.line];
  }
  return functions;
}

}  // namespace attest::hip
