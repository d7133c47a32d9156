#include "contracts/attended.hpp"

#include <algorithm>
#include <array>
#include <sstream>

namespace attest {
namespace {

constexpr std::array<std::string_view, 4> expectation_names = {"value", "zero", "any", "untouched"};

/// Keys [first, last) of a request's text, split where the shared prefix ends.
void add_text(const Request& r, std::int64_t first, std::int64_t last, std::vector<KeyRun>& keys) {
  const std::int64_t split = std::clamp(r.shared_prefix, first, std::max(first, last));
  if (first < split) keys.push_back({r.shared_sequence, first, split - first});
  if (split < last) keys.push_back({r.sequence, split, last - split});
}

std::vector<KeyRun> keys_of(const Problem& p, const Request& r, std::int64_t token) {
  std::vector<KeyRun> keys;
  if (p.model.cross_attention) {
    if (r.encoder_tokens > 0) keys.push_back({r.sequence, -r.encoder_tokens, r.encoder_tokens});
  } else if (!r.tree_parent.empty()) {
    add_text(r, 0, r.committed, keys);
    for (std::int64_t t = token; t >= 0; t = r.tree_parent[static_cast<std::size_t>(t)]) {
      add_text(r, r.committed + t, r.committed + t + 1, keys);
    }
  } else {
    const std::int64_t position = r.committed + token;
    const std::int64_t first =
        p.model.window ? std::max<std::int64_t>(0, position - *p.model.window + 1) : 0;
    add_text(r, first, position + 1, keys);
  }
  return canonical(std::move(keys));
}

std::string to_text(const std::vector<KeyRun>& keys) {
  if (keys.empty()) return "no keys";
  std::ostringstream os;
  constexpr std::size_t shown = 4;
  for (std::size_t i = 0; i < std::min(shown, keys.size()); ++i) {
    const KeyRun& run = keys[i];
    os << (i ? ", " : "");
    if (run.sequence == unknown_sequence) {
      os << run.count << " slots from " << run.first << " that hold nothing";
    } else {
      os << "keys [" << run.first << ", " << run.first + run.count << ") of sequence "
         << run.sequence;
    }
  }
  if (keys.size() > shown) os << ", and " << keys.size() - shown << " more runs";
  return os.str();
}

template <class T>
std::optional<std::string> scalar_difference(std::string_view what, const T& expected,
                                             const T& got) {
  if (expected == got) return std::nullopt;
  std::ostringstream os;
  os << what << ": expected " << expected << ", got " << got;
  return os.str();
}

std::optional<std::string> row_difference(std::size_t r, const AttendedRow& expected,
                                          const AttendedRow& got) {
  if (expected.expect == RowExpectation::any) return std::nullopt;
  if (expected.expect == got.expect && expected.keys == got.keys) return std::nullopt;
  std::ostringstream os;
  os << "row " << r << " (request " << expected.request << ", token " << expected.token << "): ";
  if (got.expect != expected.expect) {
    os << "expected " << name(expected.expect) << ", got " << name(got.expect);
  } else {
    os << "expected " << to_text(expected.keys) << "; got " << to_text(got.keys);
  }
  return os.str();
}

}  // namespace

std::string_view name(RowExpectation expectation) {
  return expectation_names[static_cast<std::size_t>(expectation)];
}

std::int64_t AttendedRow::visible() const {
  std::int64_t total = 0;
  for (const KeyRun& run : keys) total += run.count;
  return total;
}

std::vector<KeyRun> canonical(std::vector<KeyRun> runs) {
  std::erase_if(runs, [](const KeyRun& run) { return run.count <= 0; });
  std::sort(runs.begin(), runs.end(), [](const KeyRun& a, const KeyRun& b) {
    return a.sequence != b.sequence ? a.sequence < b.sequence : a.first < b.first;
  });
  std::vector<KeyRun> merged;
  for (const KeyRun& run : runs) {
    // Overlapping runs stay apart: a key read twice counts twice.
    if (!merged.empty() && merged.back().sequence == run.sequence &&
        merged.back().first + merged.back().count == run.first) {
      merged.back().count += run.count;
    } else {
      merged.push_back(run);
    }
  }
  return merged;
}

Attended attended(const Problem& problem) {
  Attended meaning{.scale = problem.model.softmax_scale,
                   .softcap = problem.model.softcap,
                   .sinks = problem.model.sinks,
                   .num_q_heads = problem.model.num_q_heads,
                   .num_kv_heads = problem.model.num_kv_heads,
                   .rows = {}};
  for (std::size_t i = 0; i < problem.requests.size(); ++i) {
    const Request& r = problem.requests[i];
    for (std::int64_t t = 0; t < r.new_tokens; ++t) {
      AttendedRow row;
      row.request = static_cast<std::int64_t>(i);
      row.token = t;
      row.keys = keys_of(problem, r, t);
      row.expect = !r.live            ? RowExpectation::any
                   : row.keys.empty() ? RowExpectation::zero
                                      : RowExpectation::value;
      meaning.rows.push_back(std::move(row));
    }
  }
  return meaning;
}

std::optional<std::string> difference(const Attended& expected, const Attended& got) {
  if (auto d = scalar_difference("scale", expected.scale, got.scale)) return d;
  if (auto d = scalar_difference("softcap", expected.softcap, got.softcap)) return d;
  if (auto d = scalar_difference("sinks", expected.sinks, got.sinks)) return d;
  if (auto d = scalar_difference("q heads", expected.num_q_heads, got.num_q_heads)) return d;
  if (auto d = scalar_difference("kv heads", expected.num_kv_heads, got.num_kv_heads)) return d;
  for (std::size_t r = 0; r < expected.rows.size(); ++r) {
    static const AttendedRow uncovered{.keys = {}, .expect = RowExpectation::untouched};
    const AttendedRow& row = r < got.rows.size() ? got.rows[r] : uncovered;
    if (auto d = row_difference(r, expected.rows[r], row)) return d;
  }
  return std::nullopt;
}

}  // namespace attest
