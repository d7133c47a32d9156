#pragma once

#include <concepts>
#include <string>
#include <string_view>

#include "contracts/call.hpp"
#include "contracts/rule.hpp"

namespace attest {

/// "(8, 16, 128)"
std::string shape_text(const TensorMeta& tensor);
std::string strides_text(const TensorMeta& tensor);

/// "seq_lens[2]"
template <std::integral Index>
std::string entry(std::string_view array, Index i) {
  return std::string(array) + "[" + std::to_string(i) + "]";
}
/// "req_to_token[4][131]"
template <std::integral Row, std::integral Column>
std::string entry(std::string_view array, Row i, Column j) {
  return entry(array, i) + "[" + std::to_string(j) + "]";
}

/// Whether the values are there to judge; otherwise notes that the array was not recorded.
bool recorded(const IntArray& array, std::string_view name, Report& report);

}  // namespace attest
