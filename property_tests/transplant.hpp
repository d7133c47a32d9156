#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "contracts/call.hpp"

namespace attest {

/// How the entries of an array that differs from the right one follow when the batch gets smaller.
enum class Transplant {
  from_the_front,  ///< entry i keeps what was wrong with entry i
  from_the_back,   ///< the last entry keeps what was wrong with the last
  everywhere,      ///< every entry gets the first difference; scalars stay as they were called
};

/// What is wrong with `got`, a call that should have been `right`, put into `onto`, the right call
/// of another (smaller) step: for every field that differs, sizes and integers by as much, dtypes,
/// flags and factors as they are. All three of one signature; `onto` stays where they are not.
/// \param kept  fields to carry over; the others are `onto`'s
Call transplanted(const Call& got, const Call& right, const Call& onto,
                  const std::set<std::string_view>& kept, Transplant how);

/// Whether what is wrong with `moved`, put into `onto`, is of the kind that was wrong with `got`: a
/// field without a negative entry or size still has none, one without a zero neither. A kernel that
/// counted 140 keys for 142 is not shown by one that counts -1 for 1.
bool keeps_signs(const Call& got, const Call& moved, const Call& onto);

/// The fields in which two calls of one signature differ, under the kernel's own names.
std::vector<std::string_view> differing_fields(const Call& a, const Call& b);

}  // namespace attest
