#pragma once

#include <span>
#include <string>
#include <vector>

#include "backends/backend.hpp"
#include "contracts/problem.hpp"

namespace attest {

/// One thing a step can ask of a kernel.
struct Feature {
  std::string_view name;
  void (*put)(Problem& problem);  ///< into a plain verify step
};
std::span<const Feature> all_features();

/// Whether a backend takes a step with one feature: what its capabilities say, then what it answers
/// for the call that a framework would make. `expressible` is false where the signature has no way
/// to pass it.
struct Support {
  bool expressible = true;
  Answer answer;
};
Support support_of(const Backend& backend, const Feature& feature);

/// A row for each backend, a column for each feature, every cell asked; then each "no" with its
/// reason.
std::string support_text(std::span<const Backend* const> backends);

}  // namespace attest
