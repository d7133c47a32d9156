#include "backends/backend.hpp"

namespace attest {

BackendName split_backend_name(std::string_view name) {
  const std::size_t dot = name.find('.');
  const std::size_t at = name.find('@');
  const bool well_formed = dot != std::string_view::npos && at != std::string_view::npos &&
                           dot > 0 && at > dot + 1 && at + 1 < name.size() &&
                           name.find('.', dot + 1) == std::string_view::npos &&
                           name.find('@', at + 1) == std::string_view::npos;
  if (!well_formed) {
    throw std::invalid_argument("\"" + std::string(name) +
                                "\" is not a backend name <impl>.<signature>@<engine>");
  }
  return {std::string(name.substr(0, dot)), std::string(name.substr(dot + 1, at - dot - 1)),
          std::string(name.substr(at + 1))};
}

}  // namespace attest
