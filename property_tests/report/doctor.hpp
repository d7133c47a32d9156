#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "backends/backend.hpp"
#include "property_tests/report/console.hpp"
#include "property_tests/report/machine.hpp"

namespace attest {

/// What this machine can run, and why not the rest.
struct Diagnosis {
  struct Entry {
    std::string name, engine, says, version;
    Answer available;
    std::string only_when_named;  ///< why `run` leaves it out by itself; empty = it does not
    bool fault = false;           ///< a deliberate fault of the harness's own tests
  };
  Machine machine;
  std::vector<Entry> backends;
  std::int64_t mutants = 0;        ///< mistakes that `attest mutants` tries; 0: not said
  std::string required;            ///< ATTEST_REQUIRE
  std::vector<std::string> unmet;  ///< one sentence per requirement nothing here meets
};

/// Asks every backend. `required` is the value of ATTEST_REQUIRE.
Diagnosis examine(std::span<const Backend* const> backends, std::string_view required);

/// Deliberate faults are counted, and listed when `with_faults`.
std::string doctor_text(const Diagnosis& diagnosis, bool with_faults, const Console& console);
std::string doctor_json(const Diagnosis& diagnosis);

}  // namespace attest
