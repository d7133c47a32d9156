#include "property_tests/null_oracles.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <unordered_map>
#include <utility>
#include <vector>

#include "reference/compare.hpp"

namespace attest {
namespace {

/// One row of a null answer: nothing where it does not apply.
using RowAnswer = std::optional<std::vector<double>>;

/// Rows in the order worth trying: most keys first, as only those have room for every mistake.
std::vector<std::int64_t> rows_to_try(const Attended& meaning) {
  std::vector<std::int64_t> rows;
  for (std::size_t r = 0; r < meaning.rows.size(); ++r) {
    if (meaning.rows[r].expect == RowExpectation::value)
      rows.push_back(static_cast<std::int64_t>(r));
  }
  const auto visible = [&](std::int64_t row) {
    return meaning.rows[static_cast<std::size_t>(row)].visible();
  };
  std::sort(rows.begin(), rows.end(), [&](std::int64_t a, std::int64_t b) {
    return std::pair(visible(b), a) < std::pair(visible(a), b);
  });
  return rows;
}

std::vector<double> row_of(const Expected& expected, std::int64_t row) {
  const auto first = expected.out.begin() + static_cast<std::ptrdiff_t>(expected.index(row, 0, 0));
  return {first, first + static_cast<std::ptrdiff_t>(expected.heads * expected.dim)};
}

/// What the reference says of one row that sees `keys` instead.
std::vector<double> row_with(const Agreed& agreed, std::int64_t row, const Attended& changed) {
  ReferenceOptions options;
  options.envelopes = false;
  options.threads = 1;
  options.round_scaled_q = agreed.round_scaled_q;
  options.only_rows = {row};
  return row_of(reference_attention(changed, agreed.source, options), row);
}

std::vector<double> row_with_keys(const Agreed& agreed, std::int64_t row,
                                  std::vector<KeyRun> keys) {
  Attended changed = agreed.meaning;
  changed.rows[static_cast<std::size_t>(row)].keys = canonical(std::move(keys));
  return row_with(agreed, row, changed);
}

const AttendedRow& truth(const Agreed& agreed, std::int64_t row) {
  return agreed.meaning.rows[static_cast<std::size_t>(row)];
}

RowAnswer zeros(const Agreed& agreed, std::int64_t) {
  return std::vector<double>(static_cast<std::size_t>(agreed.expected.heads * agreed.expected.dim));
}

RowAnswer mean_of_v(const Agreed& agreed, std::int64_t row) {
  if (truth(agreed, row).visible() < 2) return std::nullopt;
  Attended changed = agreed.meaning;
  changed.scale = 0;
  changed.softcap = 0;
  changed.sinks = false;
  return row_with(agreed, row, changed);
}

/// The row of the same token, or the last one, of the nearest earlier request that has values.
RowAnswer previous_request(const Agreed& agreed, std::int64_t row) {
  const AttendedRow& here = truth(agreed, row);
  std::int64_t best = -1;
  for (std::int64_t r = row - 1; r >= 0; --r) {
    const AttendedRow& other = truth(agreed, r);
    if (other.request == here.request || other.expect != RowExpectation::value) continue;
    if (best >= 0 && other.request != truth(agreed, best).request) break;
    best = r;
    if (other.token <= here.token) break;
  }
  if (best < 0) return std::nullopt;
  return row_of(agreed.expected, best);
}

RowAnswer last_key_ignored(const Agreed& agreed, std::int64_t row) {
  std::vector<KeyRun> keys = truth(agreed, row).keys;
  if (truth(agreed, row).visible() < 2) return std::nullopt;
  const auto newest = std::max_element(
      keys.begin(), keys.end(),
      [](const KeyRun& a, const KeyRun& b) { return a.first + a.count < b.first + b.count; });
  if (newest->first < 0) ++newest->first;  // encoder token j stands at position -1 - j
  --newest->count;
  return row_with_keys(agreed, row, std::move(keys));
}

RowAnswer first_page_only(const Agreed& agreed, std::int64_t row) {
  const std::int64_t page = agreed.source.problem().pool.page_size;
  std::vector<KeyRun> keys;
  for (KeyRun run : truth(agreed, row).keys) {
    if (run.first < 0 || run.first >= page) continue;  // encoder keys have pages of their own
    run.count = std::min(run.count, page - run.first);
    keys.push_back(run);
  }
  keys = canonical(std::move(keys));
  if (keys.empty() || keys == truth(agreed, row).keys) return std::nullopt;
  return row_with_keys(agreed, row, std::move(keys));
}

struct Answerer {
  NullOracle oracle;
  RowAnswer (*row)(const Agreed&, std::int64_t);
};

constexpr std::array answerers = {
    Answerer{{"zeros", "a kernel that writes zeros"}, zeros},
    Answerer{{"mean_of_v", "a kernel that ignores q and averages V"}, mean_of_v},
    Answerer{{"previous_request", "a kernel that gives each request the previous one's output"},
             previous_request},
    Answerer{{"last_key_ignored", "a kernel that ignores each row's newest key"}, last_key_ignored},
    Answerer{{"first_page_only", "a kernel that reads the first page only"}, first_page_only},
};

/// The identity table needs no arithmetic: where it names another page, it names other content.
constexpr NullOracle identity_table = {
    "identity_block_table", "a kernel that takes page numbers in order, without the table"};

constexpr auto oracles = [] {
  std::array<NullOracle, answerers.size() + 1> all = {};
  for (std::size_t i = 0; i < answerers.size(); ++i) all[i] = answerers[i].oracle;
  all.back() = identity_table;
  return all;
}();

bool passes(const Agreed& agreed, std::int64_t row, const std::vector<double>& answer,
            Output& got) {
  Attended only = agreed.meaning;
  for (std::size_t r = 0; r < only.rows.size(); ++r) {
    if (static_cast<std::int64_t>(r) != row) only.rows[r].expect = RowExpectation::any;
  }
  std::transform(answer.begin(), answer.end(),
                 got.values.begin() + static_cast<std::ptrdiff_t>(got.index(row, 0)),
                 [](double value) { return static_cast<float>(value); });
  return all_passed(compare(only, agreed.expected, got, agreed.profile, agreed.source));
}

/// True when the answer applies somewhere and no row refutes it.
bool never_refuted(const Answerer& answerer, const Agreed& agreed,
                   const std::vector<std::int64_t>& rows, Output& got) {
  bool applied = false;
  for (const std::int64_t row : rows) {
    const RowAnswer answer = answerer.row(agreed, row);
    if (!answer) continue;
    if (!passes(agreed, row, *answer, got)) return false;
    applied = true;
  }
  return applied;
}

bool table_is_identity(const TensorSource& source) {
  const Problem& problem = source.problem();
  // Cross attention reads encoder slots; one page leaves no other table.
  const bool applies = !problem.model.cross_attention && problem.pool.num_pages > 1;
  return applies && has_identity_table(problem, source.slots());
}

std::string would_pass(const NullOracle& oracle) {
  return "null oracle " + std::string(oracle.id) + ": " + std::string(oracle.says) +
         " would pass this case";
}

}  // namespace

bool has_identity_table(const Problem& problem, const SlotMap& slots) {
  for (std::size_t i = 0; i < problem.requests.size(); ++i) {
    if (!problem.requests[i].live) continue;
    for (std::size_t c = 0; c < slots.pages[i].size(); ++c) {
      if (slots.pages[i][c] != static_cast<std::int64_t>(c)) return false;
    }
  }
  return true;
}

std::span<const NullOracle> all_null_oracles() { return oracles; }

std::optional<std::string> why_untrusted(const Agreed& agreed) {
  const std::vector<std::int64_t> rows = rows_to_try(agreed.meaning);
  if (rows.empty()) return "no row has a value to compare: all are padded or see no key";
  Output got;
  got.rows = agreed.expected.rows;
  got.heads = agreed.expected.heads;
  got.dim = agreed.expected.dim;
  got.values.resize(agreed.expected.out.size());
  got.untouched.resize(static_cast<std::size_t>(got.rows * got.heads));
  for (const Answerer& answerer : answerers) {
    if (never_refuted(answerer, agreed, rows, got)) return would_pass(answerer.oracle);
  }
  if (table_is_identity(agreed.source)) return would_pass(identity_table);
  return std::nullopt;
}

}  // namespace attest
