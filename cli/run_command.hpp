#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "property_tests/run.hpp"

namespace CLI {
class App;
}

namespace attest {

/// What `attest run` was asked for.
struct RunCommand {
  RunPlan plan;
  std::string backend, shard = "1/1", rules, profile = "generated", memory, recipe, device = "0",
                       record, junit, known, found = "replay";
  std::optional<std::int64_t> cases, one_case;
  bool json = false, verbose = false, quiet = false, expect_caught = false;
  std::vector<std::string> arguments;
};

/// Its flags, each into the part of `options` that it means.
void add_run_flags(CLI::App& command, RunCommand& options);

/// The lattice and the long contexts are what they are: a flag that would be passed over is
/// refused.
void refuse_flags_of_other_profiles(const CLI::App& command, const RunCommand& options);

}  // namespace attest
