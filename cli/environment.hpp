#pragma once

#include <string>

namespace attest {

/// Value of ATTEST_REQUIRE, or empty.
std::string required_engines();

}  // namespace attest
