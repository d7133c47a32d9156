#include "property_tests/mutants/handed_bugs.hpp"

#include <array>

namespace attest {
namespace {

constexpr std::array<std::string_view, 6> class_names = {"numeric",  "trace", "rule-only",
                                                         "relation", "cost",  "outside"};
constexpr std::array<std::string_view, 8> site_names = {
    "metadata",       "launcher",  "wrapper", "kernel mathematics",
    "kernel address", "reduction", "graph",   "process"};

}  // namespace

std::string_view name(BugClass kind) { return class_names[static_cast<std::size_t>(kind)]; }
std::string_view name(Site site) { return site_names[static_cast<std::size_t>(site)]; }

std::vector<HandedBug> all_handed_bugs() {
  std::vector<HandedBug> all;
  for (const auto part :
       {bugs_of_addresses(), bugs_of_lengths(), bugs_of_masks(), bugs_of_softmax()}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

}  // namespace attest
