#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "backends/hip/runtime/host_engine.hpp"

namespace attest::hip::host {

/// Spelled as thread_order() reads it.
std::string to_string(ThreadOrder order);

/// Two thread orders that left different bytes: a missing barrier, or another race.
struct OrderDependence {
  ThreadOrder order;
  std::size_t offset = 0;  ///< of the first byte that is not as in forward order
  /// "byte 12 of the output differs between thread orders forward and reverse: ..."
  std::string to_string() const;
};

/// Runs `run`, which launches with the given order and returns what its kernels wrote, forward,
/// reverse and in `random_orders` random orders. Kernels without a race give the same bytes in all.
std::optional<OrderDependence> order_dependence(
    const std::function<std::vector<std::byte>(ThreadOrder)>& run, int random_orders = 2);

}  // namespace attest::hip::host
