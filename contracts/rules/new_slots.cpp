#include "contracts/rules/new_slots.hpp"

#include <algorithm>
#include <string>
#include <tuple>

namespace attest {

void NewSlots::add(std::size_t request, std::int64_t token, std::int64_t page, std::int64_t offset,
                   std::int64_t count) {
  ranges_.push_back({page, offset, count, token, request});
}

void NewSlots::report_shared(Report& report) {
  std::sort(ranges_.begin(), ranges_.end(), [](const Range& a, const Range& b) {
    return std::tie(a.page, a.offset) < std::tie(b.page, b.offset);
  });
  for (std::size_t n = 1; n < ranges_.size(); ++n) {
    const Range& a = ranges_[n - 1];
    const Range& b = ranges_[n];
    if (a.page != b.page || a.offset + a.count <= b.offset || a.request == b.request) continue;
    const std::int64_t token = b.token;
    report.add(std::string(array_) + " of request " + std::to_string(b.request),
               "page " + std::to_string(b.page) + " offset " + std::to_string(b.offset) +
                   " for its token " + std::to_string(token),
               "a slot of its own: request " + std::to_string(a.request) + " stores its token " +
                   std::to_string(a.token + (b.offset - a.offset)) + " there");
  }
}

}  // namespace attest
