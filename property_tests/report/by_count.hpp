#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace attest {

/// The entries, largest count first, equal counts by name.
std::vector<std::pair<std::string, std::int64_t>> by_count(
    const std::map<std::string, std::int64_t>& counts);

}  // namespace attest
