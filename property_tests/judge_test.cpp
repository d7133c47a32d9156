#include "property_tests/judge.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <limits>

#include "contracts/resource_error.hpp"
#include "property_tests/stub_backend.hpp"

namespace attest {
namespace {

using testing::HasSubstr;

std::vector<std::string> failed(const Judgement& judgement) {
  std::vector<std::string> names;
  for (const OracleResult& result : judgement.oracles) {
    if (!result.passed) names.push_back(result.oracle);
  }
  return names;
}

TEST(Judge, PassesTheHonestKernelWithEveryOracleNamed) {
  const Judgement j = judge(verify_case(), StubBackend::inner());
  EXPECT_EQ(j.verdict, Verdict::pass) << j.reason;
  std::vector<std::string> names;
  for (const OracleResult& result : j.oracles) names.push_back(result.oracle);
  EXPECT_THAT(names, testing::IsSupersetOf({"damage", "poison", "rows", "hard", "z", "gain"}));
  EXPECT_GT(j.worst_over_bound, 0);
  EXPECT_LT(j.worst_over_bound, 1);
  EXPECT_GT(j.worst_z, 0);
  EXPECT_GT(j.seconds, 0);
  EXPECT_TRUE(j.reason.empty());
  EXPECT_EQ(j.engine, "cpu");
}

TEST(Judge, NeverPassesANaN) {
  StubBackend stub;
  stub.after = [](const TensorSource&, const RunOptions&, RunResult& result) {
    result.out.values[result.out.index(5, 3, 7)] = std::numeric_limits<float>::quiet_NaN();
  };
  const Judgement j = judge(verify_case(), stub);
  EXPECT_EQ(j.verdict, Verdict::mismatch);
  EXPECT_THAT(j.reason, HasSubstr("row 5"));
}

TEST(Judge, FailsOneWrongElementAndSaysWhere) {
  StubBackend stub;
  stub.after = [](const TensorSource&, const RunOptions&, RunResult& result) {
    result.out.values[result.out.index(4, 1, 9)] += 0.5F;
  };
  const Judgement j = judge(verify_case(), stub);
  EXPECT_EQ(j.verdict, Verdict::mismatch);
  EXPECT_THAT(j.reason, HasSubstr("row 4 head 1 element 9"));
  EXPECT_THAT(failed(j), testing::Contains("hard"));
  EXPECT_FALSE(j.diagnosis.empty());
}

TEST(Judge, LooksForNoDiagnosisWhenNotAsked) {
  StubBackend stub;
  stub.after = [](const TensorSource&, const RunOptions&, RunResult& result) {
    result.out.values[0] += 0.5F;
  };
  EXPECT_EQ(judge(verify_case(), stub, {.diagnose = false}).diagnosis, "");
}

TEST(Judge, CallsARefusalOfALegalCallAMismatch) {
  StubBackend stub;
  stub.after = [](const TensorSource&, const RunOptions&, RunResult& result) {
    result.raised = "ValueError: no such head size";
  };
  const Judgement j = judge(verify_case(), stub);
  EXPECT_EQ(j.verdict, Verdict::mismatch);
  EXPECT_EQ(j.reason, "kernel raised: ValueError: no such head size");
}

TEST(Judge, CallsDamageAMismatchThoughEveryNumberIsRight) {
  for (const int sentinel : {0, 1}) {  // in the first or only in the second launch
    StubBackend stub;
    stub.after = [=](const TensorSource&, const RunOptions& options, RunResult& result) {
      if (options.sentinel == sentinel) result.damage = {"2 bytes after the pool were overwritten"};
    };
    const Judgement j = judge(verify_case(), stub);
    EXPECT_EQ(j.verdict, Verdict::mismatch);
    EXPECT_EQ(j.reason, "damage: 2 bytes after the pool were overwritten");
  }
}

TEST(Judge, CallsARowThatNoRunWroteUnwritten) {
  StubBackend stub;
  stub.after = [](const TensorSource&, const RunOptions& options, RunResult& result) {
    result.out.untouched[static_cast<std::size_t>(6 * result.out.heads + 2)] = 1;
    for (std::int64_t d = 0; d < result.out.dim; ++d) {
      // Each run leaves its own sentinel, which is a NaN.
      result.out.values[result.out.index(6, 2, d)] =
          std::bit_cast<float>(0x7FC00000U + static_cast<std::uint32_t>(options.sentinel));
    }
  };
  const Judgement j = judge(verify_case(), stub);
  EXPECT_EQ(j.verdict, Verdict::mismatch);
  EXPECT_THAT(j.reason, HasSubstr("rows: row 6 head 2"));
  EXPECT_THAT(j.reason, HasSubstr("was never written"));
}

TEST(Judge, FailsOutputThatDependsOnPoison) {
  StubBackend stub;
  stub.after = [](const TensorSource& source, const RunOptions&, RunResult& result) {
    float& value = result.out.values[result.out.index(6, 2, 1)];
    if (source.poison().poison == Poison::loud) value = std::nextafter(value, 10.0F);
  };
  const Judgement j = judge(verify_case(), stub);
  EXPECT_EQ(j.verdict, Verdict::mismatch);
  EXPECT_THAT(j.reason, HasSubstr("poison: row 6 head 2 element 1"));
  EXPECT_EQ(judge(verify_case(), stub, {.both_poisons = false}).verdict, Verdict::pass);
  EXPECT_EQ(stub.runs, 4) << "two, another one for the diagnosis, and one";
}

TEST(Judge, ComparesOnlyRowsThatMeanSomethingBetweenPoisons) {
  Case c = verify_case();
  c.problem.requests[1].live = false;
  StubBackend stub;
  stub.after = [](const TensorSource& source, const RunOptions&, RunResult& result) {
    if (source.poison().poison == Poison::loud) result.out.values[result.out.index(5, 0)] = 1e9F;
  };
  const Judgement j = judge(c, stub);
  EXPECT_EQ(j.verdict, Verdict::pass) << j.reason;
}

TEST(Judge, TurnsAnExceptionOfTheBackendIntoACrash) {
  StubBackend stub;
  stub.after = [](const TensorSource&, const RunOptions&, RunResult&) {
    throw BackendError("hipLaunchKernel(grid 4): invalid device function");
  };
  const Judgement j = judge(verify_case(), stub);
  EXPECT_EQ(j.verdict, Verdict::crashed);
  EXPECT_THAT(j.reason, HasSubstr("invalid device function"));
}

TEST(Judge, LetsAnythingThatTheHarnessRunsOutOfAloud) {
  StubBackend stub;
  stub.after = [](const TensorSource&, const RunOptions&, RunResult&) {
    throw ResourceError(ENOMEM, "reserving 5 bytes");
  };
  EXPECT_THROW(judge(verify_case(), stub), ResourceError);
}

TEST(Judge, RefusesToForceWhatABackendDoesNotHave) {
  StubBackend stub;
  stub.stub_capabilities.forms = false;
  stub.stub_capabilities.most_kv_splits = 4;
  JudgeOptions options;
  options.run.form = "3d";
  EXPECT_EQ(judge(verify_case(), stub, options).verdict, Verdict::unsupported);
  options.run = {.kv_splits = 5};
  const Judgement j = judge(verify_case(), stub, options);
  EXPECT_EQ(j.verdict, Verdict::unsupported);
  EXPECT_THAT(j.reason, HasSubstr("4 parts at most, not into 5"));
  EXPECT_EQ(stub.runs, 0);
  options.run = {.form = "3d", .kv_splits = 2};
  EXPECT_EQ(judge(verify_case(), StubBackend::inner(), options).form, "split 2");
}

TEST(Judge, LetsTheHarnessRunOutOfMemoryAloud) {
  StubBackend stub;
  stub.after = [](const TensorSource&, const RunOptions&, RunResult&) { throw std::bad_alloc(); };
  EXPECT_THROW(judge(verify_case(), stub), std::bad_alloc);
}

TEST(Judge, GivesTheReasonOfABackendThatCannotRun) {
  StubBackend unavailable;
  unavailable.stub_available = Answer::no("no AMX on this machine");
  const Judgement a = judge(verify_case(), unavailable);
  EXPECT_EQ(a.verdict, Verdict::unavailable);
  EXPECT_EQ(a.reason, "no AMX on this machine");
  StubBackend unsupported;
  unsupported.stub_supports = Answer::no("head_dim 64 has no tile");
  const Judgement b = judge(verify_case(), unsupported);
  EXPECT_EQ(b.verdict, Verdict::unsupported);
  EXPECT_EQ(b.reason, "head_dim 64 has no tile");
  EXPECT_EQ(unavailable.runs + unsupported.runs, 0);
}

TEST(Judge, CallsOtherSignaturesAndUnloweredProblemsUnsupported) {
  Case other = verify_case();
  other.signature = Signature::extend;
  EXPECT_EQ(judge(other, StubBackend::inner()).verdict, Verdict::unsupported);
  Case tree = verify_case();
  tree.problem.requests[0].tree_parent = {-1, 0, 0, 1};
  const Judgement j = judge(tree, StubBackend::inner());
  EXPECT_EQ(j.verdict, Verdict::unsupported);
  EXPECT_THAT(j.reason, HasSubstr("tree"));
}

TEST(Judge, SaysWhyAnIllegalProblemIsNotJudged) {
  Case c = verify_case();
  c.problem.model.num_q_heads = 7;
  const Judgement j = judge(c, StubBackend::inner());
  EXPECT_EQ(j.verdict, Verdict::unsupported);
  EXPECT_THAT(j.reason, HasSubstr("num_q_heads = 7"));
}

TEST(Judge, RejectsAWrongCallBeforeTheLaunchUnlessToldToReport) {
  Case c = verify_case();
  c.fault = "prefix_short_by_draft_count";
  StubBackend stub;
  const Judgement enforced = judge(c, stub);
  EXPECT_EQ(enforced.verdict, Verdict::rejected);
  EXPECT_EQ(stub.runs, 0);
  EXPECT_THAT(enforced.reason, HasSubstr("seqused_k"));
  ASSERT_FALSE(enforced.findings.empty());
  const Judgement reported = judge(c, stub, {.rules = RulesMode::report});
  EXPECT_EQ(reported.verdict, Verdict::mismatch);
  EXPECT_EQ(reported.findings, enforced.findings);
  EXPECT_THAT(reported.diagnosis, HasSubstr("the metadata is wrong"));
  const Judgement off = judge(c, stub, {.rules = RulesMode::off});
  EXPECT_EQ(off.verdict, Verdict::mismatch);
  EXPECT_TRUE(off.findings.empty());
}

TEST(Judge, DoesNotLaunchACallWhoseValuesWereNotRecorded) {
  Case c = verify_case();
  c.call = std::get<Call>(call_of(c, make_slot_map(c.problem)));
  auto& table = std::get<UnifiedCall>(*c.call).block_table;
  table.recorded = false;
  table.values.clear();
  StubBackend stub;
  const Judgement j = judge(c, stub);
  EXPECT_EQ(j.verdict, Verdict::unsupported);
  EXPECT_EQ(j.reason, "values of block_table not recorded");
  EXPECT_EQ(stub.runs, 0);
}

TEST(Judge, KeepsTheFindingsOfCallsThatAreOnlySlow) {
  Case c = verify_case();
  c.problem.model.num_kv_heads = 1;
  c.fault = "kv_heads_expanded";
  const Judgement j = judge(c, StubBackend::inner());
  EXPECT_EQ(j.verdict, Verdict::pass) << j.reason;
  EXPECT_THAT(j.findings, testing::Contains(testing::Field(&Finding::severity, Severity::slow)));
}

TEST(Judge, HandsOutTheReproLineBeforeTheFirstLaunch) {
  StubBackend stub;
  std::vector<std::string> lines;
  JudgeOptions options;
  options.before_launch = [&](const std::string& line) {
    EXPECT_EQ(stub.runs, 0);
    lines.push_back(line);
  };
  const Judgement j = judge(verify_case(), stub, options);
  EXPECT_EQ(lines, std::vector<std::string>{j.repro});
  Case rejected = verify_case();
  rejected.fault = "max_seqlen_q_one";
  judge(rejected, stub, options);
  EXPECT_EQ(lines.size(), 1U);
}

TEST(Judge, WritesReproLinesThatNameTheCaseAndTheRules) {
  Case c = verify_case();
  EXPECT_EQ(repro_line(c, "scalar.unified@cpu", RulesMode::enforce),
            "attest run --backend scalar.unified@cpu --seed 1 --case 2");
  c.fault = "window_missing";
  EXPECT_EQ(repro_line(c, "scalar.unified@cpu", RulesMode::report),
            "attest run --backend scalar.unified@cpu --seed 1 --case 2 --rules=report "
            "--fault window_missing");
  c.origin = "fixtures/found/a.json";
  EXPECT_EQ(repro_line(c, "scalar.unified@cpu", RulesMode::off),
            "attest replay fixtures/found/a.json --backend scalar.unified@cpu --rules=off");
  EXPECT_EQ(repro_line(c, "scalar.unified@cpu", RulesMode::enforce, "../b/attest"),
            "../b/attest replay fixtures/found/a.json --backend scalar.unified@cpu");
  c.origin = "my fixtures/it's.json";
  EXPECT_EQ(repro_line(c, "scalar.unified@cpu", RulesMode::enforce),
            "attest replay 'my fixtures/it'\\''s.json' --backend scalar.unified@cpu");
}

TEST(Judge, DoesNotTrustABatchOfPaddedRows) {
  Case c = verify_case();
  c.problem.mode = Mode::idle;
  for (Request& request : c.problem.requests) {
    request.live = false;
    request.committed = 0;
    request.new_tokens = 1;
  }
  const Judgement j = judge(c, StubBackend::inner());
  EXPECT_EQ(j.verdict, Verdict::untrusted) << j.reason;
  EXPECT_THAT(j.reason, HasSubstr("no row has a value"));
}

TEST(Judge, DoesNotTrustACaseWhoseTableIsTheIdentity) {
  Case c = verify_case();
  c.problem.requests.resize(1);
  c.problem.pool.placement = Placement::sequential;
  const Judgement j = judge(c, StubBackend::inner());
  EXPECT_EQ(j.verdict, Verdict::untrusted);
  EXPECT_THAT(j.reason, HasSubstr("identity_block_table"));
}

}  // namespace
}  // namespace attest
