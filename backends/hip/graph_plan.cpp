#include "backends/hip/graph_plan.hpp"

#include <stdexcept>

namespace attest::hip {

GraphPlan graph_plan(std::string_view text) {
  GraphPlan plan;
  std::string_view rest = text;
  for (bool first = true, more = true; more; first = false) {
    const std::size_t comma = rest.find(',');
    const std::string_view word = rest.substr(0, comma);
    more = comma != std::string_view::npos;
    rest.remove_prefix(more ? comma + 1 : rest.size());
    if (first && word == "same") {
      plan.captured = Captured::same;
    } else if (first && word == "short") {
      plan.captured = Captured::short_;
    } else if (first && word == "long") {
      plan.captured = Captured::long_;
    } else if (!first && word == "eager") {
      plan.eager_between = true;
    } else if (!first && word == "inside") {
      plan.lengths_inside = true;
    } else {
      throw std::invalid_argument("no graph '" + std::string(text) +
                                  "': same, short or long, then ,eager and ,inside");
    }
  }
  return plan;
}

}  // namespace attest::hip
