#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace attest {

/// Every word that the features of a case may be (features_of, and of the other profiles their
/// cells), "page N" for a page of any size.
std::vector<std::string> feature_words();

bool is_feature_word(std::string_view word);

}  // namespace attest
