#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "contracts/rule.hpp"

namespace attest {

/// Where the new tokens of a batch will be stored, to find two requests that store in one place.
class NewSlots {
 public:
  explicit NewSlots(std::string_view array) : array_(array) {}

  /// Tokens token, token + 1, ... of `request`: `count` slots of `page` from `offset` on.
  void add(std::size_t request, std::int64_t token, std::int64_t page, std::int64_t offset,
           std::int64_t count);
  /// One finding for each pair of neighbouring ranges that overlap.
  void report_shared(Report& report);

 private:
  struct Range {
    std::int64_t page, offset, count;
    std::int64_t token;
    std::size_t request;
  };
  std::string_view array_;
  std::vector<Range> ranges_;
};

}  // namespace attest
