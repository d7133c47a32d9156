#include "backends/amx/amx_backend.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <thread>

#include "backends/amx/engine_lease.hpp"
#include "backends/registry.hpp"
#include "backends/scalar/naive_attention.hpp"
#include "backends/scalar/scalar_cases.hpp"

namespace attest::amx {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

/// The backend of this process's engine, whichever that is.
const Backend& amx_backend(Signature signature) {
  return *select_backends("amx." + std::string(attest::name(signature)) + "@" +
                          std::string(name(process_engine().engine)))
              .front();
}

/// The scalar kernel's cases that these kernels claim: bf16 extend and decode.
std::vector<ScalarCase> amx_cases() {
  std::vector<ScalarCase> cases;
  for (const ScalarCase& c : scalar_cases()) {
    const bool signature = c.signature == Signature::extend || c.signature == Signature::decode;
    const Model& m = c.problem.model;
    if (signature && m.q_dtype == Dtype::bf16 && m.kv_dtype == Dtype::bf16) cases.push_back(c);
  }
  return cases;
}

class Amx : public testing::TestWithParam<ScalarCase> {
 protected:
  void SetUp() override {
    if (process_engine().engine == Engine::off) GTEST_SKIP() << process_engine().reason;
  }
};
INSTANTIATE_TEST_SUITE_P(Cases, Amx, testing::ValuesIn(amx_cases()),
                         [](const testing::TestParamInfo<ScalarCase>& info) {
                           return std::string(attest::name(info.param.signature)) + info.param.name;
                         });

TEST_P(Amx, AgreesWithThreeLoopsInDouble) {
  const ScalarCase& c = GetParam();
  const TensorSource source(c.problem, c.recipe, 7);
  const RunResult got = amx_backend(c.signature).run(call_of(c, source), source, {});
  ASSERT_FALSE(got.raised) << *got.raised;
  const NaiveOutput expected = naive_attention(source);
  ASSERT_EQ(got.out.values.size(), expected.out.size());
  const double u = unit_roundoff(Dtype::bf16);
  double worst = 0;
  for (std::size_t i = 0; i < expected.out.size(); ++i) {
    // Relative rounding of P and of the output, with room for the float32 sums.
    const double bound =
        (1.2 * u + 1e-5) * (expected.abs_v[i] + std::fabs(expected.out[i])) + 1e-30;
    const double error = std::fabs(static_cast<double>(got.out.values[i]) - expected.out[i]);
    ASSERT_LE(error, bound) << i << ": got " << got.out.values[i] << ", expected "
                            << expected.out[i];
    worst = std::max(worst, error / bound);
  }
  EXPECT_GT(worst, 0) << "bit-equal to double: nothing was rounded, nothing was compared";
  EXPECT_THAT(got.damage, IsEmpty());
  EXPECT_THAT(got.lints, IsEmpty());
}

TEST_P(Amx, GivesTheSameBitsForEveryThreadCountAndPoison) {
  const ScalarCase& c = GetParam();
  const TensorSource nan(c.problem, c.recipe, 9);
  const TensorSource loud(c.problem, c.recipe, 9, {.poison = Poison::loud, .nan_in_v_tail = true});
  const Call call = call_of(c, nan);
  const Backend& backend = amx_backend(c.signature);
  const RunResult one = backend.run(call, nan, {.threads = 1});
  EXPECT_EQ(one.out.values, backend.run(call, nan, {.threads = 5}).out.values);
  EXPECT_EQ(one.out.values, backend.run(call, loud, {.sentinel = 1, .threads = 1}).out.values);
}

TEST_P(Amx, CountsItsTilesWhenEmulated) {
  if (process_engine().engine == Engine::native) GTEST_SKIP() << "the CPU does not count tiles";
  const ScalarCase& c = GetParam();
  const TensorSource source(c.problem, c.recipe, 7);
  const RunResult got = amx_backend(c.signature).run(call_of(c, source), source, {});
  EXPECT_GT(got.counters.at("tile_dots"), 0);
  EXPECT_GT(got.counters.at("tile_bytes"), 0);
}

TEST(AmxEngines, AreAvailableExactlyWhereTheySayWhy) {
  for (const Engine engine : {Engine::native, Engine::patch, Engine::trap}) {
    const AmxBackend backend(Signature::extend, engine);
    const Answer answer = backend.available();
    EXPECT_EQ(answer.yes, possible(engine).yes);
    EXPECT_EQ(answer.reason.empty(), answer.yes);
    const bool usual = engine == process_engine().engine;
    const bool tells_why_off = process_engine().engine == Engine::off && engine == Engine::native;
    EXPECT_EQ(backend.only_when_named().empty(), usual || tells_why_off);
    EXPECT_EQ(backend.capabilities().isolate,
              !usual && engine != Engine::native && process_engine().engine == Engine::native);
  }
}

TEST(AmxEngines, PatchAndTrapTakeTurnsInOneProcessAndAgree) {
  if (process_engine().engine == Engine::native) GTEST_SKIP() << "the CPU has tiles";
  if (!possible(Engine::trap) || !possible(Engine::patch)) GTEST_SKIP() << "ATTEST_AMX is set";
  const AmxBackend patch(Signature::decode, Engine::patch);
  const AmxBackend trap(Signature::decode, Engine::trap);
  for (const ScalarCase& c : amx_cases()) {
    if (c.signature != Signature::decode || c.name != "Plain") continue;
    const TensorSource source(c.problem, c.recipe, 21);
    const Call call = call_of(c, source);
    RunResult trapped;
    std::thread other([&] { trapped = trap.run(call, source, {.threads = 2}); });
    const RunResult patched = patch.run(call, source, {.threads = 2});
    other.join();
    EXPECT_EQ(trapped.engine, "trap");
    EXPECT_EQ(patched.engine, "patch");
    EXPECT_EQ(trapped.out.values, patched.out.values);
  }
}

// --- What must never reach a parallel region. ---

template <class CallType>
RunResult run_changed(Signature signature, std::string_view name,
                      const std::function<void(CallType&)>& change) {
  for (const ScalarCase& c : scalar_cases()) {
    if (c.signature != signature || c.name != name) continue;
    const TensorSource source(c.problem, c.recipe, 5);
    Call call = call_of(c, source);
    change(std::get<CallType>(call));
    return amx_backend(signature).run(call, source, {});
  }
  throw std::logic_error("no such case");
}

struct BadExtend {
  const char* says;
  void (*change)(ExtendCall&);
};

TEST(AmxChecks, EveryBadExtendArgumentIsRefusedByName) {
  if (process_engine().engine == Engine::off) GTEST_SKIP() << process_engine().reason;
  const BadExtend cases[] = {
      {"seq_lens[0] = 0", [](ExtendCall& c) { c.seq_lens.values[0] = 0; }},
      {"columns", [](ExtendCall& c) { c.seq_lens.values[0] = 1 << 30; }},
      {"runs past the", [](ExtendCall& c) { c.extend_seq_lens.values[0] = 100000; }},
      {"is negative", [](ExtendCall& c) { c.extend_seq_lens.values[0] = -1; }},
      {"extend_start_loc[0] = -3", [](ExtendCall& c) { c.extend_start_loc.values[0] = -3; }},
      {"which an earlier request has",
       [](ExtendCall& c) { c.extend_start_loc.values[1] = c.extend_start_loc.values[0]; }},
      {"max_len_extend = 1", [](ExtendCall& c) { c.max_len_extend = 1; }},
      {"is outside the pool",
       [](ExtendCall& c) {
         for (auto& slot : c.req_to_token.values) slot = 1 << 28;
       }},
      {"= -1 is outside the pool",
       [](ExtendCall& c) {
         for (auto& slot : c.req_to_token.values) slot = -1;
       }},
      {"outside the", [](ExtendCall& c) { c.req_pool_indices.values[0] = 1 << 20; }},
      {"req_pool_indices has",
       [](ExtendCall& c) { c.req_pool_indices = int_array(Dtype::int64, {1}); }},
      {"out is not contiguous", [](ExtendCall& c) { c.o_extend.strides[0] += 64; }},
      {"k_extend and v_extend are required", [](ExtendCall& c) { c.k_extend.reset(); }},
      {"rows and heads",
       [](ExtendCall& c) {
         c.o_extend = contiguous(
             Dtype::bf16, {c.o_extend.shape[0] + 1, c.o_extend.shape[1], c.o_extend.shape[2]});
       }},
  };
  for (const BadExtend& bad : cases) {
    const RunResult r = run_changed<ExtendCall>(Signature::extend, "Plain", bad.change);
    ASSERT_TRUE(r.raised) << bad.says;
    EXPECT_THAT(*r.raised, HasSubstr(bad.says));
  }
}

struct BadDecode {
  const char* says;
  void (*change)(DecodeCall&);
};

TEST(AmxChecks, EveryBadDecodeArgumentIsRefusedByName) {
  if (process_engine().engine == Engine::off) GTEST_SKIP() << process_engine().reason;
  const BadDecode cases[] = {
      {"seq_lens[0] = 0", [](DecodeCall& c) { c.seq_lens.values[0] = 0; }},
      {"columns", [](DecodeCall& c) { c.seq_lens.values[0] = 1 << 30; }},
      {"loc[0] = -1", [](DecodeCall& c) { c.loc.values[0] = -1; }},
      {"loc has", [](DecodeCall& c) { c.loc = int_array(Dtype::int64, {1}); }},
      {"is outside the pool",
       [](DecodeCall& c) {
         for (auto& slot : c.req_to_token.values) slot = 1 << 28;
       }},
      {"kv splits", [](DecodeCall& c) { c.attn_logits.shape[2] = 0; }},
      {"query has",
       [](DecodeCall& c) {
         c.seq_lens.values.pop_back();
         c.seq_lens = int_array(Dtype::int64, c.seq_lens.values);
         c.req_pool_indices.values.pop_back();
         c.req_pool_indices = int_array(Dtype::int64, c.req_pool_indices.values);
       }},
      {"out is not contiguous", [](DecodeCall& c) { c.output.strides[0] += 64; }},
  };
  for (const BadDecode& bad : cases) {
    const RunResult r = run_changed<DecodeCall>(Signature::decode, "Plain", bad.change);
    ASSERT_TRUE(r.raised) << bad.says;
    EXPECT_THAT(*r.raised, HasSubstr(bad.says));
  }
}

}  // namespace
}  // namespace attest::amx
