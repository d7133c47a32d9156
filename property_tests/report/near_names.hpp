#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace attest {

/// Candidates a person may have meant, nearest first, at most three: few edits away (insert,
/// delete, replace, swap of neighbours), or containing `text`.
std::vector<std::string> near_names(std::string_view text, std::span<const std::string> candidates);

/// "; did you mean a, b or c?", or empty.
std::string did_you_mean(std::string_view text, std::span<const std::string> candidates);

}  // namespace attest
