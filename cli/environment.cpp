#include "cli/environment.hpp"

#include <cstdlib>

namespace attest {

std::string required_engines() {
  const char* value = std::getenv("ATTEST_REQUIRE");
  return value == nullptr ? "" : value;
}

}  // namespace attest
