#include "backends/hip/runtime/host_orders.hpp"

#include <algorithm>

namespace attest::hip::host {

std::string to_string(ThreadOrder order) {
  switch (order.kind) {
    case ThreadOrder::Kind::forward:
      return "forward";
    case ThreadOrder::Kind::reverse:
      return "reverse";
    case ThreadOrder::Kind::random:
      break;
  }
  return "random:" + std::to_string(order.seed);
}

std::string OrderDependence::to_string() const {
  return "byte " + std::to_string(offset) +
         " of the output differs between thread orders forward and " + host::to_string(order) +
         ": the threads of a block race, as when a __syncthreads() is missing";
}

std::optional<OrderDependence> order_dependence(
    const std::function<std::vector<std::byte>(ThreadOrder)>& run, int random_orders) {
  using Kind = ThreadOrder::Kind;
  const std::vector<std::byte> expected = run({Kind::forward, 0});
  std::vector<ThreadOrder> others = {{Kind::reverse, 0}};
  for (int i = 0; i < random_orders; ++i) {
    others.push_back({Kind::random, static_cast<std::uint64_t>(i) + 1});
  }
  for (const ThreadOrder& order : others) {
    const std::vector<std::byte> got = run(order);
    const auto [at, other] =
        std::mismatch(expected.begin(), expected.end(), got.begin(), got.end());
    if (at != expected.end() || other != got.end()) {
      return OrderDependence{order, static_cast<std::size_t>(at - expected.begin())};
    }
  }
  return std::nullopt;
}

}  // namespace attest::hip::host
