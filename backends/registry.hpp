#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/backend.hpp"

namespace attest {

/// The only list of backends that are part of this program, in report order.
std::span<const Backend* const> all_backends();

/// Those and the kernels behind scripts/attest_worker.py, which asks Python once.
std::span<const Backend* const> known_backends();

/// Those that `selector` names: a full name, or a prefix that ends at '.', '-' or '@' or at a whole
/// component ("scalar", "scalar.unified", "faulty"), or all signatures on one engine ("hip@rocm");
/// several separated by commas, none of them empty. A part with a slash, or that ends in ".so", is
/// a plugin's file. Without a selector: every backend of this program that is not a deliberate
/// fault.
/// \throws std::invalid_argument naming the part that matches nothing, with near names, or what is
/// wrong with the plugin.
std::vector<const Backend*> select_backends(std::string_view selector);
std::vector<const Backend*> select_backends(std::string_view selector,
                                            std::span<const Backend* const> from);

/// The same for a run on this machine: a part that names no engine ("amx", "amx.extend"), or no
/// selector at all, leaves out engines that another one stands for here
/// (Backend::only_when_named).
std::vector<const Backend*> backends_to_run(std::string_view selector);

/// "scalar", "scalar.unified" and "scalar.unified@cpu" of each: what a person may have meant.
std::vector<std::string> names_to_mean(std::span<const std::string_view> backends);

/// The parts of a selector or of ATTEST_REQUIRE, between commas, without the spaces around them.
std::vector<std::string_view> split_at_commas(std::string_view text);

/// Whether the backend is a kernel plus a named fault: it exists to be caught.
bool is_deliberate_fault(const Backend& backend);

/// Engines a run must have really used, from ATTEST_REQUIRE ("hip@rocm,amx@native"): each is
/// "<impl>@<engine>". Returns one sentence per requirement that no available backend of exactly
/// that implementation and engine meets; an emulated or host engine never satisfies a real one.
std::vector<std::string> unmet_requirements(std::string_view required);
std::vector<std::string> unmet_requirements(std::string_view required,
                                            std::span<const Backend* const> from);

}  // namespace attest
