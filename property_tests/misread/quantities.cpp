#include "property_tests/misread/quantities.hpp"

#include <algorithm>

namespace attest {
namespace {

Quantity constant(std::int64_t value) {
  const std::string text = std::to_string(value);
  return {text, text, [value](const Seen&) { return value; }};
}

std::int64_t window_begin(const Seen& seen, std::int64_t token) {
  const auto& window = seen.view.model().window;
  if (!window || seen.view.model().cross_attention) return 0;
  return std::max<std::int64_t>(0, seen.request().committed() + token - *window + 1);
}

}  // namespace

std::int64_t floor_div(std::int64_t a, std::int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }
std::int64_t floor_mod(std::int64_t a, std::int64_t b) { return a - floor_div(a, b) * b; }

std::int64_t first_seen(const Seen& seen) { return window_begin(seen, seen.token); }
std::int64_t first_seen_of_request(const Seen& seen) { return window_begin(seen, 0); }
std::int64_t end_seen(const Seen& seen) {
  return seen.view.model().cross_attention ? seen.request().keys : seen.position() + 1;
}

std::int64_t longest(const KernelView& view) {
  std::int64_t most = 0;
  for (const ViewedRequest& r : view.requests) most = std::max(most, r.keys);
  return most;
}
std::int64_t shortest(const KernelView& view) {
  std::int64_t least = view.requests.front().keys;
  for (const ViewedRequest& r : view.requests) least = std::min(least, r.keys);
  return least;
}

const std::vector<Quantity>& quantities() {
  static const std::vector<Quantity> all = {
      constant(1),
      {"a_page", "a page", [](const Seen& s) { return s.view.page; }},
      {"new_tokens", "the number of new tokens", [](const Seen& s) { return s.request().rows; }},
      {"the_token", "the row's number in its request", [](const Seen& s) { return s.token; }},
      {"window_begin", "where the row's window begins", first_seen},
      {"first_window_begin", "where the window of the request's first row begins",
       first_seen_of_request},
      {"encoder_tokens", "the encoder's tokens", [](const Seen& s) { return s.request().encoder; }},
      {"the_request", "the request's number", [](const Seen& s) { return s.number; }},
      {"first_row", "the request's first row", [](const Seen& s) { return s.request().first_row; }},
      {"committed", "the committed length", [](const Seen& s) { return s.request().committed(); }},
      {"kv_head", "the kv head's number",
       [](const Seen& s) { return s.place.head / s.view.group(); }},
      {"head_in_group", "the head's number in its group",
       [](const Seen& s) { return s.place.head % s.view.group(); }},
      constant(2),
      constant(3),
      constant(4),
      constant(8),
      constant(16),
      constant(32),
      constant(64),
      constant(128),
  };
  return all;
}

const std::vector<OtherRequest>& other_requests() {
  static const auto count = [](const Seen& s) {
    return static_cast<std::int64_t>(s.view.requests.size());
  };
  static const std::vector<OtherRequest> all = {
      {"previous_request", "the request before", [](const Seen& s) { return s.number - 1; }},
      {"next_request", "the request after",
       [](const Seen& s) { return s.number + 1 < count(s) ? s.number + 1 : -1; }},
      {"request_0", "request 0", [](const Seen&) -> std::int64_t { return 0; }},
      {"last_request", "the last request", [](const Seen& s) { return count(s) - 1; }},
      {"next_request_cyclic", "the next request, of the last one the first",
       [](const Seen& s) { return (s.number + 1) % count(s); }},
      {"previous_request_cyclic", "the request before, of the first one the last",
       [](const Seen& s) { return (s.number + count(s) - 1) % count(s); }},
      {"mirrored_request", "the requests in reversed order",
       [](const Seen& s) { return count(s) - 1 - s.number; }},
      {"request_of_half", "the request of half the number",
       [](const Seen& s) { return s.number / 2; }},
      {"request_of_the_row", "the request whose number is the row's",
       [](const Seen& s) { return std::min(s.place.row, count(s) - 1); }},
      {"request_of_the_head", "the request whose number is the kv head's",
       [](const Seen& s) { return std::min(s.place.head / s.view.group(), count(s) - 1); }},
  };
  return all;
}

}  // namespace attest
