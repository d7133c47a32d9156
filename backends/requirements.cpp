#include <algorithm>
#include <utility>

#include "backends/registry.hpp"

namespace attest {
namespace {

std::string unmet_requirement(std::string_view requirement, std::span<const Backend* const> from) {
  const std::string text(requirement);
  const std::size_t at = requirement.find('@');
  if (at == std::string_view::npos || at == 0 || at + 1 == requirement.size() ||
      requirement.find('.') != std::string_view::npos) {
    return "\"" + text + "\" is not of the form <impl>@<engine>";
  }
  std::string reason;
  std::string others;
  for (const Backend* backend : from) {
    const BackendName name = split_backend_name(backend->name());
    if (name.implementation != requirement.substr(0, at)) continue;
    if (name.engine != requirement.substr(at + 1)) {
      const std::string engine = "@" + name.engine;
      if (others.find(engine) == std::string::npos) others += (others.empty() ? "" : ", ") + engine;
      continue;
    }
    const Answer answer = backend->available();
    if (answer) return "";
    if (reason.empty()) reason = std::string(backend->name()) + ": " + answer.reason;
  }
  if (!reason.empty()) return text + " is required but not available: " + reason;
  if (!others.empty()) {
    return text + " is required but this build has " + text.substr(0, at) + " only as " + others +
           ", which does not stand in for it";
  }
  return text + " is required but this build has no backend of that implementation";
}

}  // namespace

std::vector<std::string> unmet_requirements(std::string_view required) {
  const auto own = all_backends();
  const auto is_own = [&](std::string_view part) {
    const std::string_view implementation = part.substr(0, part.find('@'));
    return std::any_of(own.begin(), own.end(), [&](const Backend* backend) {
      return split_backend_name(backend->name()).implementation == implementation;
    });
  };
  const auto parts = split_at_commas(required);
  const bool all_own = required.empty() || std::all_of(parts.begin(), parts.end(), is_own);
  return unmet_requirements(required, all_own ? own : known_backends());
}

std::vector<std::string> unmet_requirements(std::string_view required,
                                            std::span<const Backend* const> from) {
  std::vector<std::string> unmet;
  if (required.empty()) return {};
  for (const std::string_view part : split_at_commas(required)) {
    std::string sentence = unmet_requirement(part, from);
    if (!sentence.empty()) unmet.push_back(std::move(sentence));
  }
  return unmet;
}

}  // namespace attest
