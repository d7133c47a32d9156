#pragma once

#include <vector>

#include "property_tests/run.hpp"

namespace attest {

/// The devices a backend's cases are dealt to: case i of the plan runs on the (i mod count)-th.
std::vector<int> devices_of(const RunPlan& plan, const Backend& backend);

/// Whether the backend runs what the plan asks for, its devices and its graph included, else why
/// not.
Answer can_run(const RunPlan& plan, const Backend& backend);

/// "all", "1" or "0,2". \throws std::invalid_argument for anything else.
std::vector<int> parse_devices(std::string_view text);

}  // namespace attest
