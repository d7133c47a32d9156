#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "property_tests/generators.hpp"
#include "property_tests/misread/misread_fit.hpp"
#include "property_tests/settle_ties.hpp"
#include "property_tests/stub_backend.hpp"

namespace attest {
namespace {

/// A case with ordinary numbers where poison would be, and what a call of it says.
struct Scene {
  Case c;
  TensorSource source;
  SlotMap slots;
  Call call;
  Attended truth;

  explicit Scene(const Case& of)
      : c(of),
        source(c.problem, Recipe::normal, c.seed, {Poison::ordinary, true}),
        slots(make_slot_map(c.problem)),
        call(std::get<Call>(call_of(c, slots))),
        truth(attended(c.problem)) {}
};

std::vector<std::int64_t> rows_with_value(const Attended& meaning) {
  std::vector<std::int64_t> rows;
  for (std::size_t r = 0; r < meaning.rows.size(); ++r) {
    const AttendedRow& row = meaning.rows[r];
    if (row.expect == RowExpectation::value && !row.keys.empty()) {
      rows.push_back(static_cast<std::int64_t>(r));
    }
  }
  return rows;
}

Output output_of(const Expected& expected) {
  Output out{.rows = expected.rows, .heads = expected.heads, .dim = expected.dim};
  for (const double value : expected.out) out.values.push_back(static_cast<float>(value));
  out.untouched.resize(static_cast<std::size_t>(out.rows * out.heads));
  return out;
}

Case small_case(Signature signature, std::uint64_t index) {
  return generate(5, index, {.signature = signature, .max_kv = 150, .max_requests = 3});
}

/// A view of a call leads to the very rows that the truth is made of.
TEST(KernelViews, AreWhatARightKernelReads) {
  int tried = 0;
  for (const Signature signature : all_signatures) {
    for (std::uint64_t i = 0; i < 25; ++i) {
      const Case c = small_case(signature, i);
      if (!std::holds_alternative<Call>(call_of(c, make_slot_map(c.problem)))) continue;
      const Scene scene(c);
      const auto view = view_of(scene.call, scene.source, scene.truth);
      ASSERT_TRUE(view) << name(signature) << ' ' << describe(c.problem);
      MisreadKernel kernel(*view);
      const std::vector<std::int64_t> rows = rows_with_value(scene.truth);
      if (rows.empty()) continue;
      const auto computed = kernel.compute({}, rows);
      ASSERT_TRUE(computed) << name(signature) << ' ' << describe(c.problem);
      const Expected expected = reference_attention(scene.truth, scene.source, {.only_rows = rows});
      for (std::size_t j = 0; j < expected.out.size(); ++j) {
        ASSERT_NEAR(computed->expected.out[j], expected.out[j], 1e-9) << describe(c.problem);
      }
      ++tried;
    }
  }
  EXPECT_GT(tried, 100);
}

/// Some misreadings each; together all.
class Misreadings : public testing::TestWithParam<std::size_t> {};

constexpr std::size_t shards = 16;
INSTANTIATE_TEST_SUITE_P(, Misreadings, testing::Range(std::size_t{0}, shards),
                         [](const auto& info) { return "part" + std::to_string(info.param); });

/// What a kernel that makes the mistake leaves; nothing where it reads outside of
/// an array, or leaves zeros, which tell nothing.
std::optional<Output> output_of(MisreadKernel& kernel, const Misreading& mistake,
                                const std::vector<std::int64_t>& rows) {
  const auto computed = kernel.compute(mistake, rows);
  if (!computed || !computed->zero.empty()) return std::nullopt;
  Output out = output_of(computed->expected);
  for (const Place at : computed->unwritten) {
    out.untouched[static_cast<std::size_t>(at.row * out.heads + at.head)] = 1;
  }
  return out;
}

bool differs(const Output& got, const Expected& truth) {
  const bool unwritten =
      std::find(got.untouched.begin(), got.untouched.end(), 1) != got.untouched.end();
  double worst = 0;
  for (std::size_t i = 0; i < truth.out.size(); ++i) {
    worst = std::max(worst, std::fabs(truth.out[i] - static_cast<double>(got.values[i])));
  }
  return unwritten || worst > 0.05;
}

/// A scene with what every misreading is tried on.
struct Stage {
  Scene scene;
  std::optional<KernelView> view;
  std::vector<std::int64_t> rows;
  Expected truth;
  std::optional<MisreadKernel> kernel;

  explicit Stage(const Case& c)
      : scene(c),
        view(view_of(scene.call, scene.source, scene.truth)),
        rows(rows_with_value(scene.truth)),
        truth(reference_attention(scene.truth, scene.source, {.only_rows = rows})) {
    if (view) kernel.emplace(*view);
  }
};

std::vector<std::unique_ptr<Stage>> stages() {
  std::vector<std::unique_ptr<Stage>> list;
  for (const Signature signature :
       {Signature::unified, Signature::legacy_extend, Signature::extend, Signature::paged_ragged}) {
    for (std::uint64_t i = 0, taken = 0; i < 200 && taken < 6; ++i) {
      const Case c = small_case(signature, i);
      const Model& m = c.problem.model;
      const bool small = m.num_q_heads * m.head_dim <= 512 && m.out_dtype == Dtype::bf16 &&
                         c.problem.total_new_tokens() <= 16;
      if (!small || !std::holds_alternative<Call>(call_of(c, make_slot_map(c.problem)))) continue;
      auto stage = std::make_unique<Stage>(c);
      if (stage->rows.empty() || !stage->view) continue;
      list.push_back(std::move(stage));
      ++taken;
    }
  }
  return list;
}

struct Told {
  bool shows = false;
  bool explained = false;
};

/// Whether any row reads anything else than by rights.
bool reads_differently(Stage& stage, const Misreading& mistake) {
  if (mistake.k_elements || mistake.v_elements) return true;
  const std::int64_t heads = stage.scene.c.problem.model.num_q_heads;
  return std::any_of(stage.rows.begin(), stage.rows.end(), [&](std::int64_t row) {
    for (const std::int64_t head : {std::int64_t{0}, heads / 2, heads - 1}) {
      if (stage.kernel->read(mistake, {row, head}) != stage.kernel->read({}, {row, head})) {
        return true;
      }
    }
    return false;
  });
}

/// Whether the search takes an output of the mistake for one.
Told tell(Stage& stage, const Misreading& mistake) {
  if (!reads_differently(stage, mistake)) return {};
  const auto got = output_of(*stage.kernel, mistake, stage.rows);
  if (!got || !differs(*got, stage.truth)) return {};
  const NumericsProfile& profile = StubBackend::inner().profile();
  const Scene& s = stage.scene;
  const std::vector<OracleResult> oracles = compare(s.truth, stage.truth, *got, profile, s.source);
  if (all_passed(oracles)) return {};
  const Failure failure{s.call, s.source, s.truth, *got, profile, oracles};
  MisreadSearch search(failure, stage.rows);
  const std::vector<Misreading> only = {mistake};
  const bool explained =
      search.candidates(only).size() == 1 && search.fit(mistake, stage.rows).has_value();
  return {true, explained};
}

TEST_P(Misreadings, ExplainTheKernelThatMakesThisMistake) {
  const std::vector<std::unique_ptr<Stage>> all = stages();
  ASSERT_GE(all.size(), 20U);
  const std::vector<Misreading>& misreadings = all_misreadings();
  std::size_t tried = 0, shown = 0;
  for (std::size_t i = GetParam(); i < misreadings.size(); i += shards) {
    ++tried;
    for (const auto& stage : all) {
      const Told told = tell(*stage, misreadings[i]);
      if (!told.shows) continue;
      ++shown;
      EXPECT_TRUE(told.explained) << misreadings[i].id << ": " << describe(stage->scene.c.problem);
      break;
    }
  }
  // Others need what no case here has: sizes, strides or lengths.
  EXPECT_GT(shown * 10, tried * 6) << shown << " of " << tried;
}

TEST(MisreadingTable, HasUniqueNamesAndSentences) {
  std::set<std::string> ids;
  for (const Misreading& one : all_misreadings()) {
    EXPECT_TRUE(ids.insert(one.id).second) << one.id;
    EXPECT_FALSE(one.says.empty()) << one.id;
    EXPECT_EQ(one.id.find_first_not_of("abcdefghijklmnopqrstuvwxyz_0123456789"), std::string::npos)
        << one.id;
  }
  for (const Hypothesis& one : all_hypotheses()) {
    EXPECT_FALSE(ids.contains(std::string(one.id))) << one.id;
  }
}

/// An output that no single mistake computes: two of them at once, or one on half of the heads.
TEST(MisreadingSearch, NamesNothingWhereNoMistakeComputesTheOutput) {
  int tried = 0, named = 0;
  for (const auto& stage : stages()) {
    if (stage->scene.c.problem.model.num_q_heads < 4) continue;
    Output got = output_of(stage->truth);
    // Each head is off by a vector of its own.
    for (std::size_t i = 0; i < got.values.size(); ++i) {
      got.values[i] += 0.3F * std::sin(static_cast<float>(i * i % 1013));
    }
    const NumericsProfile& profile = StubBackend::inner().profile();
    const Scene& s = stage->scene;
    const auto oracles = compare(s.truth, stage->truth, got, profile, s.source);
    if (all_passed(oracles)) continue;
    const Failure failure{s.call, s.source, s.truth, got, profile, oracles};
    MisreadSearch search(failure, stage->rows);
    ++tried;
    for (const Misreading* one : search.candidates(all_misreadings())) {
      if (!search.fit(*one, stage->rows)) continue;
      ++named;
      ADD_FAILURE() << one->id << ": " << describe(s.c.problem);
    }
  }
  EXPECT_GT(tried, 5);
  EXPECT_EQ(named, 0);
}

/// Of mistakes that compute the same in one output another one says which it is.
TEST(Ties, AreSettledByFurtherOutputs) {
  const auto all = stages();
  const std::vector<Misreading>& list = all_misreadings();
  const auto mistake = std::find_if(list.begin(), list.end(), [](const Misreading& one) {
    return one.id == "position_minus_new_tokens";
  });
  ASSERT_NE(mistake, list.end());
  const NumericsProfile& profile = StubBackend::inner().profile();
  std::size_t fewer = 0;
  for (const auto& stage : all) {
    const auto got = output_of(*stage->kernel, *mistake, stage->rows);
    const Scene& s = stage->scene;
    if (!got || !differs(*got, stage->truth)) continue;
    const auto oracles = compare(s.truth, stage->truth, *got, profile, s.source);
    const Failure failure{s.call, s.source, s.truth, *got, profile, oracles};
    const FurtherOutputs further = [&](const std::function<bool(const Failure&)>& see) {
      for (const auto& other : all) {
        const Scene& o = other->scene;
        const auto out = output_of(*other->kernel, *mistake, other->rows);
        if (!out) continue;
        const auto words = compare(o.truth, other->truth, *out, profile, o.source);
        if (!see({o.call, o.source, o.truth, *out, profile, words})) return;
      }
    };
    Ranking ranking = rank_hypotheses(failure, all_hypotheses());
    const std::size_t before = ranking.fits.size();
    settle_ties(ranking, all_hypotheses(), further);
    fewer += ranking.fits.size() < before ? 1 : 0;
    EXPECT_TRUE(std::any_of(ranking.fits.begin(), ranking.fits.end(), [&](const Fit& fit) {
      return fit.id == mistake->id;
    })) << describe(s.c.problem);
  }
  EXPECT_GT(fewer, 0U);
}

}  // namespace
}  // namespace attest
