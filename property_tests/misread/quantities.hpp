#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "property_tests/misread/misreading.hpp"

namespace attest {

/// A number that a kernel has at hand, and may add where it should not.
struct Quantity {
  std::string id;    ///< "new_tokens"
  std::string says;  ///< "the number of new tokens"
  std::function<std::int64_t(const Seen&)> of;
};
/// Positions are off by one of these: constants, then what a row, request or head has.
const std::vector<Quantity>& quantities();

/// Another request that a kernel may take for the one at hand; -1: there is none.
struct OtherRequest {
  std::string id;    ///< "previous_request"
  std::string says;  ///< "the request before"
  std::function<std::int64_t(const Seen&)> of;
};
const std::vector<OtherRequest>& other_requests();

std::int64_t floor_div(std::int64_t a, std::int64_t b);
std::int64_t floor_mod(std::int64_t a, std::int64_t b);
/// The oldest key that a row sees by rights, and the one behind its newest.
std::int64_t first_seen(const Seen& seen);
std::int64_t end_seen(const Seen& seen);
/// The oldest key that the first row of its request sees.
std::int64_t first_seen_of_request(const Seen& seen);
/// Most entries, or keys, of a request.
std::int64_t longest(const KernelView& view);
std::int64_t shortest(const KernelView& view);

}  // namespace attest
