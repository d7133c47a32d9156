#include "property_tests/diagnose.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "backends/registry.hpp"
#include "contracts/signatures.hpp"
#include "memory/poison.hpp"
#include "property_tests/generators.hpp"
#include "property_tests/hypothesis_fit.hpp"
#include "property_tests/judge.hpp"
#include "property_tests/stub_backend.hpp"
#include "reference/attention.hpp"

namespace attest {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::vector<std::string> hypothesis_ids() {
  std::vector<std::string> ids;
  for (const Hypothesis& hypothesis : all_hypotheses()) ids.emplace_back(hypothesis.id);
  return ids;
}

/// What a kernel would write that computes `meaning`.
Output output_of(const Attended& meaning, const TensorSource& source,
                 const ReferenceOptions& options = {}, const Hypothesis& hypothesis = {}) {
  Expected expected = reference_attention(meaning, source, options);
  apply_factor(hypothesis, source, expected);
  Output out;
  out.rows = expected.rows;
  out.heads = expected.heads;
  out.dim = expected.dim;
  for (const double value : expected.out) {
    out.values.push_back(decode(Dtype::bf16, encode(Dtype::bf16, static_cast<float>(value))));
  }
  out.untouched.resize(static_cast<std::size_t>(out.rows * out.heads));
  return out;
}

std::string diagnosis_of(const Case& c, const Output& got) {
  const TensorSource source(c.problem, c.recipe, c.seed);
  const SlotMap slots = make_slot_map(c.problem);
  const Call call = std::get<Call>(call_of(c, slots));
  const Attended meaning = attended(c.problem);
  const std::vector<OracleResult> oracles = {{.oracle = "hard", .passed = false, .row = 0}};
  return diagnose({call, source, meaning, got, StubBackend::inner().profile(), oracles});
}

/// What is generated to try a mistake on: fp8 queries too where the signature takes them.
Capabilities tried_on(Signature signature) {
  Capabilities can = {.signature = signature, .tree_mask = signature == Signature::extend};
  if (signature != Signature::unified) return can;
  can.q_dtypes.push_back(Dtype::fp8_e4m3fn);
  can.kv_dtypes.push_back(Dtype::fp8_e4m3fn);
  return can;
}

class Hypotheses : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(, Hypotheses, testing::ValuesIn(hypothesis_ids()),
                         [](const auto& info) { return info.param; });

/// A kernel that makes the mistake is told by its name, or by one that means the same there.
TEST_P(Hypotheses, ExplainTheKernelThatMakesThisMistake) {
  const std::vector<Hypothesis> all = all_hypotheses();
  const auto hypothesis =
      std::find_if(all.begin(), all.end(), [](const Hypothesis& h) { return h.id == GetParam(); });
  int tried = 0;
  int named = 0;
  // With two tiles each split is one.
  const std::int64_t longest = GetParam().find("split") == std::string::npos ? 120 : 300;
  for (const Signature signature : {Signature::unified, Signature::extend}) {
    const Capabilities can = tried_on(signature);
    for (std::uint64_t i = 0; i < 400 && tried < 4; ++i) {
      // The recipe is named, or each draw would look for data that gives its case power.
      const Case c = generate(21, i,
                              {.signature = signature,
                               .capabilities = &can,
                               .max_kv = longest,
                               .max_requests = 3,
                               .recipe = Recipe::normal});
      Attended wrong = attended(c.problem);
      const Model& m = c.problem.model;
      const bool cheap = m.num_q_heads * m.head_dim <= 1024;
      if (m.out_dtype != Dtype::bf16 || !cheap) continue;
      if (!hypothesis->apply(c.problem, wrong)) continue;
      const TensorSource source(c.problem, c.recipe, c.seed);
      if (reads_dead_keys(source, wrong)) continue;  // a kernel would find poison there
      ++tried;
      ReferenceOptions heads;
      heads.k_head_shift = hypothesis->k_head_shift;
      heads.v_head_shift = hypothesis->v_head_shift;
      const std::string diagnosis = diagnosis_of(c, output_of(wrong, source, heads, *hypothesis));
      EXPECT_THAT(diagnosis, testing::Not(StartsWith("unexplained"))) << describe(c.problem);
      const std::vector<std::string> names = names_in_diagnosis(diagnosis).first;
      named += std::find(names.begin(), names.end(), GetParam()) != names.end() ? 1 : 0;
    }
  }
  EXPECT_GT(tried, 0);
  EXPECT_GT(named, 0) << "always explained by another name";
}

/// One decoding request of 50 keys in pages of 16, window 20; the oldest `evicted` were given back.
Case windowed_case(std::int64_t evicted) {
  Case c = verify_case();
  Problem& p = c.problem;
  p.mode = Mode::decode;
  p.requests.resize(1);
  p.requests[0].committed = 49;
  p.requests[0].new_tokens = 1;
  p.requests[0].tree_parent.clear();
  p.model.window = 20;
  p.pool.page_size = 16;
  p.pool.num_pages = 8;
  p.pool.slots = {{{evicted, 50 - evicted}}};
  if (evicted > 0) p.pool.slots[0].insert(p.pool.slots[0].begin(), {-1, evicted});
  return c;
}

/// Of a kernel whose only row is the poison of a slot that holds nothing in a page in use.
std::string diagnosis_of_poison(const Case& c) {
  const TensorSource source(c.problem, c.recipe, c.seed);
  Output got = output_of(attended(c.problem), source);
  const std::uint32_t bits = poison_bits(Dtype::bf16, Poison::nan, Region::past_kv_len);
  std::fill(got.values.begin(), got.values.end(), decode(Dtype::bf16, bits));
  return diagnosis_of(c, got);
}

TEST(Diagnosis, SaysThatPagesWereEvictedWhereARowReadsOldKeys) {
  EXPECT_EQ(diagnosis_of_poison(windowed_case(16)),
            "row 0 holds the NaN of region \"past kv_len or given back\", so it read bytes no "
            "kernel may read; tokens [0, 16) of request 0 were evicted: a kernel that reads keys "
            "older than the window finds this");
  EXPECT_EQ(diagnosis_of_poison(windowed_case(0)),
            "row 0 holds the NaN of region \"past kv_len\", so it read bytes no kernel may read");
  EXPECT_EQ(names_in_diagnosis(diagnosis_of_poison(windowed_case(16))).first,
            std::vector<std::string>{"stray_read"});
}

/// What lies in pages that were given back is nobody's, and the kernel reads it all the same.
TEST(Diagnosis, NamesTheSimpleMistakeThatReadsEvictedKeys) {
  const Backend& backend = *select_backends("faulty-window_ignored.unified@cpu").front();
  for (const std::int64_t evicted : {0, 16}) {
    const Judgement judgement = judge(windowed_case(evicted), backend);
    EXPECT_EQ(judgement.verdict, Verdict::mismatch) << judgement.reason;
    EXPECT_THAT(judgement.diagnosis, StartsWith("window_off: ")) << evicted << " evicted";
  }
}

/// Names that a person reads, and how few rows decided between them.
TEST(Diagnosis, NamesAtMostThreeThatComputeTheSame) {
  const Backend& backend = *select_backends("faulty-window_ignored.unified@cpu").front();
  JudgeOptions options;
  for (const std::size_t most : {3U, 8U}) {
    options.most_same = most;
    const std::string said = judge(windowed_case(0), backend, options).diagnosis;
    const DiagnosisNames names = names_in_diagnosis(said);
    EXPECT_EQ(names.first.size(), most + 1) << said;
    EXPECT_THAT(said, testing::ContainsRegex(" and [0-9]+ more"));
    EXPECT_THAT(said, HasSubstr("(explains 1 row within "));
    EXPECT_THAT(said, HasSubstr("; so few rows hardly tell them apart)"));
  }
}

TEST(Diagnosis, QuotesTheMetadataWhereTheKernelDidAsItWasTold) {
  Case c = verify_case();
  c.fault = "seqused_k_short_by_one";
  const TensorSource source(c.problem, c.recipe, c.seed);
  const SlotMap slots = make_slot_map(c.problem);
  const Call call = std::get<Call>(call_of(c, slots));
  const Output got = output_of(read(call, c.problem, slots), source);
  const std::string diagnosis = diagnosis_of(c, got);
  EXPECT_THAT(diagnosis, StartsWith("the kernel did what the metadata says"));
  EXPECT_THAT(diagnosis, HasSubstr("row 0 (request 0, token 0): expected keys [0, 131)"));
}

TEST(Diagnosis, NamesTheRegionAnOutputNaNWasReadFrom) {
  const Case c = verify_case();
  const TensorSource source(c.problem, c.recipe, c.seed);
  Output got = output_of(attended(c.problem), source);
  got.values[got.index(3, 1, 5)] =
      decode(Dtype::bf16, poison_bits(Dtype::bf16, Poison::nan, Region::past_kv_len));
  const std::string diagnosis = diagnosis_of(c, got);
  EXPECT_THAT(diagnosis, HasSubstr("row 3 holds the NaN"));
  EXPECT_THAT(diagnosis, HasSubstr(std::string(name(Region::past_kv_len))));
}

TEST(Diagnosis, SaysWhichRowWasNeverWritten) {
  const Case c = verify_case();
  const TensorSource source(c.problem, c.recipe, c.seed);
  Output got = output_of(attended(c.problem), source);
  got.untouched[static_cast<std::size_t>(5 * got.heads + 2)] = 1;
  EXPECT_THAT(diagnosis_of(c, got), StartsWith("row 5 (request 1, token 1) head 2 was never"));
}

TEST(Diagnosis, AdmitsWhatItCannotExplain) {
  const Case c = verify_case();
  const TensorSource source(c.problem, c.recipe, c.seed);
  Output got = output_of(attended(c.problem), source);
  got.values[got.index(0, 1, 5)] += 3;
  EXPECT_THAT(diagnosis_of(c, got), StartsWith("unexplained"));
}

TEST(Diagnosis, KnowsAtLeastADozenMistakesByUniqueNames) {
  const std::vector<std::string> ids = hypothesis_ids();
  EXPECT_GE(ids.size(), 12U);
  EXPECT_EQ(std::set<std::string>(ids.begin(), ids.end()).size(), ids.size());
}

}  // namespace
}  // namespace attest
