#include "property_tests/run_devices.hpp"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <stdexcept>

namespace attest {

std::vector<int> devices_of(const RunPlan& plan, const Backend& backend) {
  if (!plan.all_devices) {
    return plan.devices.empty() ? std::vector<int>{plan.run.device} : plan.devices;
  }
  std::vector<int> all(static_cast<std::size_t>(std::max(1, backend.device_count())));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

Answer can_run(const RunPlan& plan, const Backend& backend) {
  const std::vector<int> devices = devices_of(plan, backend);
  if (devices.front() == 0) {
    if (const Answer answer = backend.available(); !answer) return answer;
  }
  for (const int device : devices) {
    if (const Answer answer = backend.has_device(device); !answer) return answer;
  }
  if (!plan.run.graph.empty() && !backend.capabilities().graphs) {
    return Answer::no("it has no graphs to replay, and --graph " + plan.run.graph +
                      " was asked for");
  }
  return {};
}

std::vector<int> parse_devices(std::string_view text) {
  std::vector<int> devices;
  if (text == "all") return devices;
  std::string_view rest = text;
  for (bool more = true; more;) {
    const std::size_t comma = rest.find(',');
    const std::string_view part = rest.substr(0, comma);
    int device = -1;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), device);
    const bool whole = error == std::errc{} && end == part.data() + part.size();
    if (!whole || device < 0) {
      throw std::invalid_argument("device '" + std::string(text) + "' is not all, 1 or 0,2");
    }
    devices.push_back(device);
    more = comma != std::string_view::npos;
    rest.remove_prefix(more ? comma + 1 : rest.size());
  }
  return devices;
}

}  // namespace attest
