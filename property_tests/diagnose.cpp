#include "property_tests/diagnose.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "contracts/signatures.hpp"
#include "memory/poison.hpp"
#include "property_tests/wrapped_offset.hpp"
#include "reference/attention.hpp"
#include "reference/compare.hpp"

namespace attest {
namespace {

/// Multiply-adds all hypotheses together may cost: about two seconds.
constexpr std::int64_t budget = 4'000'000'000;
constexpr std::size_t most_rows = 12;

/// The failing rows, then the first and last row of each request: a hypothesis must explain what is
/// right as well as what is wrong.
std::vector<std::int64_t> rows_to_explain(const Failure& failure, std::size_t hypotheses) {
  const Model& model = failure.source.problem().model;
  std::vector<std::int64_t> rows;
  const auto add = [&](std::int64_t row) {
    if (row < 0 || row >= static_cast<std::int64_t>(failure.meaning.rows.size())) return;
    const bool has_value =
        failure.meaning.rows[static_cast<std::size_t>(row)].expect == RowExpectation::value;
    if (has_value && std::find(rows.begin(), rows.end(), row) == rows.end()) rows.push_back(row);
  };
  for (const OracleResult& result : failure.oracles) {
    if (!result.passed) add(result.row);
  }
  std::int64_t row = 0;
  for (const Request& request : failure.source.problem().requests) {
    add(row + request.new_tokens - 1);
    add(row);
    row += request.new_tokens;
  }
  const std::int64_t per_row = std::max<std::int64_t>(1, failure.source.problem().max_kv_len()) *
                               model.num_q_heads * (model.head_dim + model.v_head_dim);
  const std::int64_t affordable = budget / static_cast<std::int64_t>(hypotheses + 1) / per_row;
  const auto kept = std::clamp<std::int64_t>(affordable, 1, most_rows);
  rows.resize(std::min(rows.size(), static_cast<std::size_t>(kept)));
  return rows;
}

bool has_unknown_keys(const Attended& meaning, const std::vector<std::int64_t>& rows) {
  return std::any_of(rows.begin(), rows.end(), [&](std::int64_t r) {
    const auto& keys = meaning.rows[static_cast<std::size_t>(r)].keys;
    return std::any_of(keys.begin(), keys.end(),
                       [](const KeyRun& run) { return run.sequence == unknown_sequence; });
  });
}

/// Reduces a meaning to the rows to explain; those it leaves no key are zeros.
/// \returns whether any of them has a value.
bool expect_of_rows(Attended& meaning, const std::vector<std::int64_t>& rows) {
  std::vector<RowExpectation> expect(meaning.rows.size(), RowExpectation::any);
  bool any_value = false;
  for (const std::int64_t row : rows) {
    const bool empty = meaning.rows[static_cast<std::size_t>(row)].keys.empty();
    expect[static_cast<std::size_t>(row)] = empty ? RowExpectation::zero : RowExpectation::value;
    any_value = any_value || !empty;
  }
  for (std::size_t r = 0; r < expect.size(); ++r) meaning.rows[r].expect = expect[r];
  return any_value;
}

/// Largest error over the bound of the rows under a changed meaning; nothing when an oracle
/// refuses.
std::optional<double> fit(const Failure& failure, Attended meaning,
                          const std::vector<std::int64_t>& rows, ReferenceOptions options = {},
                          const Hypothesis* hypothesis = nullptr) {
  if (meaning.rows.size() != failure.meaning.rows.size() || has_unknown_keys(meaning, rows)) {
    return std::nullopt;
  }
  const bool any_value = expect_of_rows(meaning, rows);
  options.round_scaled_q = failure.profile.q_scaled_in_input_dtype;
  options.only_rows = rows;
  Expected expected = reference_attention(meaning, failure.source, options);
  if (hypothesis != nullptr) apply_factor(*hypothesis, failure.source, expected);
  const auto results = compare(meaning, expected, failure.got, failure.profile, failure.source);
  double worst = 0;
  for (const OracleResult& result : results) {
    if (result.oracle == "hard") worst = result.worst;
    const bool applies = any_value || result.oracle == "rows";  // zeros are compared by that alone
    if (applies && !result.passed) return std::nullopt;
  }
  return worst;
}

std::optional<Region> region_of(Dtype dtype, float value) {
  if (!std::isnan(value)) return std::nullopt;
  const auto bits = std::bit_cast<std::uint32_t>(value) & 0x7fffffffU;
  if (dtype == Dtype::bf16) return poisoned_region(dtype, bits >> 16);
  if (dtype == Dtype::f16) return poisoned_region(dtype, 0x7c00U | ((bits >> 13) & 0x3ffU));
  return poisoned_region(Dtype::f32, bits);
}

/// A row with a value in which every element of a head still holds the sentinel.
std::optional<std::string> unwritten_row(const Failure& failure) {
  const Output& got = failure.got;
  const auto rows = static_cast<std::int64_t>(failure.meaning.rows.size());
  for (std::int64_t row = 0; row < std::min(rows, got.rows); ++row) {
    const AttendedRow& truth = failure.meaning.rows[static_cast<std::size_t>(row)];
    if (truth.expect != RowExpectation::value) continue;
    for (std::int64_t head = 0; head < got.heads; ++head) {
      if (got.untouched[static_cast<std::size_t>(row * got.heads + head)] == 0) continue;
      return "row " + std::to_string(row) + " (request " + std::to_string(truth.request) +
             ", token " + std::to_string(truth.token) + ") head " + std::to_string(head) +
             " was never written";
    }
  }
  return std::nullopt;
}

/// Two runs that differ in forbidden bytes alone gave different output.
bool depends_on_poison(const Failure& failure) {
  return std::any_of(failure.oracles.begin(), failure.oracles.end(),
                     [](const OracleResult& r) { return r.oracle == "poison" && !r.passed; });
}

/// A NaN that still carries its payload says where it was read.
std::optional<std::string> poison_in_output(const Failure& failure) {
  const Dtype dtype = failure.source.problem().model.out_dtype;
  for (std::size_t i = 0; i < failure.got.values.size(); ++i) {
    const auto region = region_of(dtype, failure.got.values[i]);
    if (!region) continue;
    const auto per_row = static_cast<std::size_t>(failure.got.heads * failure.got.dim);
    return "row " + std::to_string(i / per_row) + " holds the NaN of region \"" +
           std::string(name(*region)) + "\", so it read bytes no kernel may read";
  }
  return std::nullopt;
}

/// A wrap that leads to live pages of others gives finite numbers: those of another meaning.
std::optional<std::string> wrap_that_fits(const Failure& failure, const WrappedOffsets& wraps,
                                          const std::vector<std::int64_t>& rows) {
  // Past 2^32 a signed and an unsigned offset wrap to the same place: the last boundary crossed is
  // named.
  std::vector<std::size_t> order(WrappedOffsets::all_wraps().size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [](std::size_t a, std::size_t b) {
    const auto wraps = WrappedOffsets::all_wraps();
    return std::pair(-wraps[a].bits, a) < std::pair(-wraps[b].bits, b);
  });
  for (const std::size_t at : order) {
    const WrappedOffsets::Wrap& wrap = WrappedOffsets::all_wraps()[at];
    std::optional<Attended> meaning = wraps.meaning(failure.meaning, wrap);
    if (meaning && fit(failure, *std::move(meaning), rows)) return wraps.in_words(wrap);
  }
  return wraps.explain_zeros(failure.got, failure.meaning);
}

struct Best {
  const Hypothesis* hypothesis = nullptr;
  double worst = 0;
};

Best best_hypothesis(const Failure& failure, const std::vector<Hypothesis>& hypotheses,
                     const std::vector<std::int64_t>& rows) {
  Best best;
  for (const Hypothesis& hypothesis : hypotheses) {
    Attended meaning = failure.meaning;
    if (!hypothesis.apply(failure.source.problem(), meaning)) continue;
    ReferenceOptions heads;
    heads.k_head_shift = hypothesis.k_head_shift;
    heads.v_head_shift = hypothesis.v_head_shift;
    const std::optional<double> worst = fit(failure, std::move(meaning), rows, heads, &hypothesis);
    if (!worst) continue;
    // A later one must fit clearly better: near ties go to the more specific.
    if (best.hypothesis == nullptr || *worst < 0.8 * best.worst) best = {&hypothesis, *worst};
  }
  return best;
}

std::string rounded(double value) {
  std::string text = std::to_string(value);
  return text.substr(0, text.find('.') + 3);
}

}  // namespace

std::string diagnose(const Failure& failure) {
  const std::vector<Hypothesis> hypotheses = all_hypotheses();
  const std::vector<std::int64_t> rows = rows_to_explain(failure, hypotheses.size());
  const Attended said = read(failure.call, failure.source.problem(), failure.source.slots());
  const std::optional<std::string> metadata = difference(failure.meaning, said);
  if (metadata) {
    const auto worst = rows.empty() ? std::nullopt : fit(failure, said, rows);
    if (worst) {
      return "the kernel did what the metadata says (within " + rounded(*worst) +
             " of the bound), and the metadata is wrong: " + *metadata;
    }
  }
  const std::string also = metadata ? "; the metadata differs from the truth: " + *metadata : "";
  if (const auto unwritten = unwritten_row(failure)) return *unwritten + also;
  const WrappedOffsets wraps(failure.call, failure.source);
  if (const auto wrapped = wraps.explain(failure.stray_reads)) return *wrapped + also;
  if (!rows.empty()) {
    if (const auto wrapped = wrap_that_fits(failure, wraps, rows)) return *wrapped + also;
  }
  if (const auto poison = poison_in_output(failure)) return *poison + also;
  const Best best = rows.empty() ? Best{} : best_hypothesis(failure, hypotheses, rows);
  if (best.hypothesis != nullptr) {
    return std::string(best.hypothesis->id) + ": " + std::string(best.hypothesis->says) +
           " (explains " + std::to_string(rows.size()) + " rows within " + rounded(best.worst) +
           " of the bound)" + also;
  }
  if (depends_on_poison(failure)) {
    return "the kernel reads bytes no kernel may read: its output follows what lies there" + also;
  }
  return "unexplained: none of " + std::to_string(hypotheses.size()) +
         " known mistakes computes this output" + also;
}

}  // namespace attest
