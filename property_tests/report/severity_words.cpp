#include "property_tests/report/severity_words.hpp"

namespace attest {

std::string_view consequence(Severity severity) {
  switch (severity) {
    case Severity::wrong:
      return "silently different numbers; rejects the call";
    case Severity::fault:
      return "an exception, an access out of bounds or NaN; rejects the call";
    case Severity::slow:
      return "right numbers at a multiple of the cost; a finding beside the verdict";
    case Severity::policy:
      return "right today on this kernel, a trap on another; a finding beside the verdict";
  }
  return "";
}

}  // namespace attest
