#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "contracts/numerics_profile.hpp"

namespace attest {

/// A profile that cannot be used. what() = "<file>: <JSON pointer>: <what is wrong and the value>".
class ProfileError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Reads one numerics profile. docs/profiles.md lists the fields; none may be missing, unknown or
/// out of its range. \throws ProfileError
NumericsProfile parse_profile(std::string_view json, std::string_view file_name);

/// The profile of "<impl>.<signature>" on `engine` that was built in from
/// backends/<impl>/profiles/*.json. The reference lives as long as the program.
/// \throws ProfileError when there is none, or one of the built-in files is malformed.
const NumericsProfile& built_in_profile(std::string_view implementation, std::string_view engine);

}  // namespace attest
