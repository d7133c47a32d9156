#pragma once

#include <filesystem>

#include "property_tests/case.hpp"

namespace attest {

/// The case of a fixture that was read from `file`, under that name: so are its errors and its
/// reproduction line. \throws FixtureError
inline Case case_in(const std::filesystem::path& file, Fixture fixture, bool with_fault) {
  fixture.name = file.string();
  return case_of(fixture, with_fault);
}

}  // namespace attest
