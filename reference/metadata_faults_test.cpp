// Ten metadata faults on normal data at three lengths: what a kernel computes from a wrong call is
// the reference under another meaning, rounded to the output's dtype.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "reference/compare.hpp"
#include "reference/simulated_kernel.hpp"

namespace attest {
namespace {

constexpr std::int64_t page = 64;
constexpr std::int64_t other_sequence = 77;  ///< what stale slots and foreign pages hold

/// Four requests of `length` committed keys, 16:2 heads of 64, with the verify rows given.
Problem verify_step(std::int64_t length, const std::vector<std::int64_t>& rows) {
  Problem p;
  p.model = {.num_q_heads = 16, .num_kv_heads = 2, .head_dim = 64, .v_head_dim = 64};
  p.mode = Mode::target_verify;
  p.pool = {.page_size = page, .num_pages = 4 * (length / page + 2)};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    p.requests.push_back(
        {.sequence = static_cast<std::int64_t>(i), .committed = length, .new_tokens = rows[i]});
  }
  return p;
}

/// Keys [0, end) of a request's sequence; from `written` on they are stale slots.
std::vector<KeyRun> keys_until(std::int64_t sequence, std::int64_t end, std::int64_t written) {
  std::vector<KeyRun> keys = {{sequence, 0, std::min(end, written)}};
  if (end > written) keys.push_back({other_sequence, written, end - written});
  return canonical(std::move(keys));
}

struct Row {
  std::int64_t index, sequence, token, rows, committed;
};

struct MetadataError {
  std::string name;
  std::vector<KeyRun> (*keys)(const Row&);
  bool uneven = false;
};

std::vector<KeyRun> shifted(const Row& r, std::int64_t by) {
  return keys_until(r.sequence, r.committed + r.token + 1 + by, r.committed + r.rows);
}

/// [0, end) with one page replaced by the same page of another sequence.
std::vector<KeyRun> with_foreign_page(const Row& r, std::int64_t first) {
  const std::int64_t end = r.committed + r.token + 1;
  return canonical({{r.sequence, 0, first},
                    {other_sequence, first, page},
                    {r.sequence, first + page, end - first - page}});
}

const std::vector<MetadataError>& errors() {
  static const std::vector<MetadataError> all = {
      {"seqused_short_by_rows", [](const Row& r) { return shifted(r, -r.rows); }},
      {"seqused_short_by_one", [](const Row& r) { return shifted(r, -1); }},
      {"seqused_long_by_one", [](const Row& r) { return shifted(r, 1); }},
      {"seqused_long_by_four", [](const Row& r) { return shifted(r, 4); }},
      {"hole_before_the_drafts",
       [](const Row& r) {
         return canonical(
             {{r.sequence, 0, r.committed - 4}, {r.sequence, r.committed, r.token + 1}});
       }},
      {"first_page_of_another", [](const Row& r) { return with_foreign_page(r, 0); }},
      {"middle_page_of_another",
       [](const Row& r) { return with_foreign_page(r, r.committed / 2 / page * page); }},
      {"seqused_of_four_rows", [](const Row& r) { return shifted(r, 4 - r.rows); }, true},
      {"seqused_of_most_rows", [](const Row& r) { return shifted(r, 6 - r.rows); }, true},
      {"indptr_of_four_rows",
       [](const Row& r) { return keys_until(r.index / 4, r.committed + r.index % 4 + 1, 1 << 30); },
       true},
  };
  return all;
}

Attended with_error(const Problem& p, const MetadataError& error) {
  Attended meaning = attended(p);
  for (std::size_t i = 0; i < meaning.rows.size(); ++i) {
    AttendedRow& row = meaning.rows[i];
    const Request& r = p.requests[static_cast<std::size_t>(row.request)];
    row.keys = error.keys(
        {static_cast<std::int64_t>(i), r.sequence, row.token, r.new_tokens, r.committed});
  }
  return meaning;
}

const OracleResult& result_of(const std::vector<OracleResult>& results, std::string_view oracle) {
  return *std::find_if(results.begin(), results.end(),
                       [&](const OracleResult& r) { return r.oracle == oracle; });
}

class MetadataFaults : public testing::TestWithParam<std::int64_t> {};

TEST_P(MetadataFaults, AreFlaggedAndTheTruthIsNot) {
  const std::int64_t length = GetParam();
  const NumericsProfile profile = profile_of({});
  for (const bool uneven : {false, true}) {
    const Problem p = verify_step(length, uneven ? std::vector<std::int64_t>{2, 4, 6, 4}
                                                 : std::vector<std::int64_t>{4, 4, 4, 4});
    const TensorSource source(p, Recipe::normal, 20);
    const Attended truth = attended(p);
    const Expected expected = reference_attention(truth, source);
    const auto judge = [&](const Attended& meaning) {
      const Expected wrong = reference_attention(meaning, source, {.envelopes = false});
      return compare(truth, expected, rounded_output(wrong.out, wrong.lse, truth, source), profile,
                     source);
    };
    EXPECT_TRUE(all_passed(judge(truth))) << length;
    for (const MetadataError& error : errors()) {
      if (error.uneven != uneven) continue;
      const auto results = judge(with_error(p, error));
      const OracleResult& z = result_of(results, "z");
      const OracleResult& hard = result_of(results, "hard");
      EXPECT_FALSE(z.passed) << error.name << " at " << length << ": z " << z.worst * 1.5;
      if (length <= 1024) {
        EXPECT_FALSE(hard.passed) << error.name << " at " << length << ": " << hard.worst;
      }
      RecordProperty(error.name,
                     "hard " + std::to_string(hard.worst) + ", z " + std::to_string(z.worst * 1.5));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Keys, MetadataFaults, testing::Values(64, 1024, 8192),
                         [](const auto& info) { return std::to_string(info.param); });

}  // namespace
}  // namespace attest
