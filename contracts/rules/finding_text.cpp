#include "contracts/rules/finding_text.hpp"

namespace attest {

std::string shape_text(const TensorMeta& tensor) {
  std::string text = "(";
  for (std::size_t d = 0; d < tensor.shape.size(); ++d) {
    text += (d ? ", " : "") + std::to_string(tensor.shape[d]);
  }
  return text + ")";
}

bool recorded(const IntArray& array, std::string_view name, Report& report) {
  if (!array.recorded) report.not_recorded(name);
  return array.recorded;
}

}  // namespace attest
