#include "contracts/rules/finding_text.hpp"

#include <cstdint>
#include <vector>

namespace attest {
namespace {

std::string list_text(const std::vector<std::int64_t>& numbers) {
  std::string text = "(";
  for (std::size_t d = 0; d < numbers.size(); ++d) {
    text += (d ? ", " : "") + std::to_string(numbers[d]);
  }
  return text + ")";
}

}  // namespace

std::string shape_text(const TensorMeta& tensor) { return list_text(tensor.shape); }

std::string strides_text(const TensorMeta& tensor) { return list_text(tensor.strides); }

bool recorded(const IntArray& array, std::string_view name, Report& report) {
  if (!array.recorded) report.not_recorded(name);
  return array.recorded;
}

}  // namespace attest
