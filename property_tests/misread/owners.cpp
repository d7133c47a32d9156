// Rows that are taken for rows of another request: its keys, at a place in it.

#include <algorithm>

#include "property_tests/misread/quantities.hpp"

namespace attest {
namespace {

using I = std::int64_t;

/// Which rows of a request.
struct Which {
  const char *id, *says;
  bool (*covers)(const Seen&);
};
constexpr Which some_rows[] = {
    {"first_rows", "a request's first row sees", [](const Seen& s) { return s.token == 0; }},
    {"last_rows", "a request's last row sees",
     [](const Seen& s) { return s.token == s.request().rows - 1; }},
    {"later_rows", "rows behind a request's first see", [](const Seen& s) { return s.token > 0; }},
    {"rows", "rows see", [](const Seen&) { return true; }},
};

/// As which new token of the other request.
struct As {
  const char *id, *says;
  I (*token)(const Seen&, const ViewedRequest& other);
};
constexpr As places[] = {
    {"last", "its last row does", [](const Seen&, const ViewedRequest& r) { return r.rows - 1; }},
    {"first", "its first row does", [](const Seen&, const ViewedRequest&) { return I{0}; }},
    {"same", "its row of the same number does",
     [](const Seen& s, const ViewedRequest& r) { return std::min(s.token, r.rows - 1); }},
    {"next", "a row behind its last one would",
     [](const Seen&, const ViewedRequest& r) { return r.rows; }},
};

}  // namespace

void add_owner_misreadings(std::vector<Misreading>& all) {
  for (const Which& which : some_rows) {
    for (const OtherRequest& other : other_requests()) {
      for (const As& as : places) {
        const auto owner = [of = other.of, covers = which.covers](const Seen& s) {
          const I at = covers(s) ? of(s) : -1;
          return at == s.number ? -1 : at;
        };
        Misreading& one = all.emplace_back();
        one.id = std::string(which.id) + "_of_" + other.id + "_as_the_" + as.id;
        one.says = std::string(which.says) + " the keys of " + other.says + " as " + as.says;
        one.key = [owner](const Seen& s, Lookup& l) {
          if (const I at = owner(s); at >= 0) l.request = at;
        };
        one.keys = [owner, token = as.token](const Seen& s, std::vector<ReadKey>& keys) {
          const I at = owner(s);
          if (at < 0 || s.view.model().cross_attention) return;
          const ViewedRequest& theirs = s.view.requests[static_cast<std::size_t>(at)];
          const I end = std::min(theirs.committed() + token(s, theirs) + 1, theirs.keys);
          const auto& window = s.view.model().window;
          keys.clear();
          for (I p = window ? std::max<I>(0, end - *window) : 0; p < end; ++p) keys.push_back({p});
        };
      }
    }
  }
}

}  // namespace attest
