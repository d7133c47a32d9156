#include "contracts/rules/row_judgement.hpp"

#include <charconv>

namespace attest {

std::string length_text(const Request& request) {
  return std::to_string(request.kv_len()) + " = " + std::to_string(request.committed) +
         " committed + " + std::to_string(request.new_tokens) + " new";
}

std::string number_text(double value) {
  char buffer[32];
  return {buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr};
}

}  // namespace attest
