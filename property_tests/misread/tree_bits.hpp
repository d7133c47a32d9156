#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "property_tests/misread/misreading.hpp"

namespace attest {

/// Entry (token, column) of a request's mask, as one that reads it wrongly has it.
using MaskBit = std::function<bool(const Seen&, std::int64_t token, std::int64_t column)>;

const std::vector<std::int64_t>& tree_parents(const Seen& seen, std::int64_t request);
/// By rights; nothing is seen outside the mask.
bool mask_bit_of(const Seen& seen, std::int64_t request, std::int64_t token, std::int64_t column);
bool mask_bit(const Seen& seen, std::int64_t token, std::int64_t column);

/// A mistake about which drafts of a tree a draft sees. Its id begins with "tree_", its sentence
/// with "of draft trees, ".
void add_tree_mistake(std::vector<Misreading>& all, const std::string& id, const std::string& says,
                      const MaskBit& read);

}  // namespace attest
