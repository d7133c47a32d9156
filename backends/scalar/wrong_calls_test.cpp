#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "backends/registry.hpp"
#include "backends/scalar/row_group.hpp"
#include "backends/scalar/scalar_cases.hpp"

namespace attest {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

const ScalarCase& named(Signature signature, std::string_view name) {
  static const std::vector<ScalarCase> cases = scalar_cases();
  for (const ScalarCase& c : cases) {
    if (c.signature == signature && c.name == name) return c;
  }
  throw std::logic_error("no such case");
}

/// A legal call, changed, on the scalar kernel.
template <class CallType>
RunResult run_changed(const ScalarCase& c, const std::function<void(CallType&)>& change) {
  const TensorSource source(c.problem, c.recipe, 5);
  Call call = call_of(c, source);
  change(std::get<CallType>(call));
  const std::string name = "scalar." + std::string(attest::name(c.signature));
  return select_backends(name).front()->run(call, source, {});
}

RunResult unified(const std::function<void(UnifiedCall&)>& change) {
  return run_changed<UnifiedCall>(named(Signature::unified, "Plain"), change);
}
RunResult extend(const std::function<void(ExtendCall&)>& change, std::string_view name = "Plain") {
  return run_changed<ExtendCall>(named(Signature::extend, name), change);
}
RunResult decode(const std::function<void(DecodeCall&)>& change) {
  return run_changed<DecodeCall>(named(Signature::decode, "Plain"), change);
}
RunResult mla(const std::function<void(MlaDecodeCall&)>& change) {
  return run_changed<MlaDecodeCall>(named(Signature::mla_decode, "Verify"), change);
}

bool row_is_nan(const RunResult& result, std::int64_t row) {
  return std::isnan(result.out.values[result.out.index(row, 0)]);
}

TEST(WrongCalls, StopAtAPageOutsideThePool) {
  const RunResult r = unified([](UnifiedCall& c) { c.block_table.values[1] = 99999; });
  EXPECT_EQ(r.raised, "block_table[0][1] = 99999 is outside the pool");
}

TEST(WrongCalls, ReadThePoisonInFrontOfThePoolForPageMinusOne) {
  const RunResult r = unified([](UnifiedCall& c) { c.block_table.values[1] = -1; });
  ASSERT_FALSE(r.raised) << r.raised.value_or("");
  EXPECT_TRUE(row_is_nan(r, 0));
}

TEST(WrongCalls, ReadPoisonOfAnUnreferencedPage) {
  const RunResult r = unified([](UnifiedCall& c) {
    std::vector<bool> used(64);
    for (const std::int64_t page : c.block_table.values)
      used[static_cast<std::size_t>(page)] = true;
    const auto free = std::find(used.begin(), used.end(), false) - used.begin();
    c.block_table.values[0] = free;
  });
  EXPECT_TRUE(row_is_nan(r, 0));
  EXPECT_FALSE(row_is_nan(r, 4)) << "another request was touched";
}

TEST(WrongCalls, GoOnInTheNextTableRowAndStopPastTheLast) {
  const RunResult next =
      unified([](UnifiedCall& c) { c.seqused_k.values[0] = c.block_table.size(1) * 16 + 8; });
  EXPECT_FALSE(next.raised) << next.raised.value_or("");
  const RunResult past =
      unified([](UnifiedCall& c) { c.seqused_k.values[3] = c.block_table.size(1) * 16 + 8; });
  EXPECT_THAT(past.raised.value_or(""), HasSubstr("is outside the table of 4 rows"));
}

TEST(WrongCalls, LeaveUncoveredRowsUntouchedAndSayWhichLieOutside) {
  // The published mistake: every request has the configured four tokens (sglang#31221).
  const RunResult r = unified([](UnifiedCall& c) { c.cu_seqlens_q.values = {0, 4, 8, 12, 16}; });
  ASSERT_FALSE(r.raised) << r.raised.value_or("");
  EXPECT_THAT(r.lints, testing::ElementsAre(HasSubstr("request 3 rows [12, 16) of 14")));
  const RunResult fewer = unified([](UnifiedCall& c) { c.cu_seqlens_q.values = {0, 4, 6, 9, 11}; });
  for (std::int64_t row = 0; row < 14; ++row) {
    EXPECT_EQ(fewer.out.untouched[static_cast<std::size_t>(row * 8)], row >= 11 ? 1 : 0) << row;
  }
}

TEST(WrongCalls, GiveZeroRowsWhereNoKeyIsVisible) {
  const RunResult r = unified([](UnifiedCall& c) { c.seqused_k.values[3] = 3; });
  EXPECT_EQ(r.out.values[r.out.index(9, 0)], 0.0F);
  EXPECT_EQ(r.out.lse[72], -std::numeric_limits<float>::infinity());
  EXPECT_NE(r.out.values[r.out.index(11, 0)], 0.0F);
}

TEST(WrongCalls, SurviveNumbersThatNothingCanMean) {
  constexpr std::int64_t huge = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t tiny = std::numeric_limits<std::int64_t>::min();
  for (const std::int64_t value : {huge, tiny, huge / 2, std::int64_t{-1}, std::int64_t{0}}) {
    unified([&](UnifiedCall& c) { c.seqused_k.values[1] = value; });
    unified([&](UnifiedCall& c) { c.cu_seqlens_q.values[2] = value; });
    unified([&](UnifiedCall& c) { c.block_table.values[0] = value; });
    unified([&](UnifiedCall& c) { c.max_seqlen_q = value; });
    unified([&](UnifiedCall& c) { c.window_size[0] = value; });
    extend([&](ExtendCall& c) { c.seq_lens.values[1] = value; });
    extend([&](ExtendCall& c) { c.extend_seq_lens.values[1] = value; });
    extend([&](ExtendCall& c) { c.extend_start_loc.values[1] = value; });
    extend([&](ExtendCall& c) { c.max_len_extend = value; });
    extend([&](ExtendCall& c) { c.max_len_extend = value; }, "Tree");
    extend([&](ExtendCall& c) { c.req_pool_indices.values[1] = value; });
    extend([&](ExtendCall& c) { c.encoder_lens->values[1] = value; }, "Encoder");
    extend([&](ExtendCall& c) { c.sliding_window_size = value; });
    decode([&](DecodeCall& c) { c.seq_lens.values[1] = value; });
    decode([&](DecodeCall& c) { c.loc.values[1] = value; });
    decode([&](DecodeCall& c) { c.sliding_window_size = value; });
    decode([&](DecodeCall& c) { c.req_pool_indices.values[1] = value; });
    mla([&](MlaDecodeCall& c) { c.kv_indptr.values[1] = value; });
    mla([&](MlaDecodeCall& c) { c.qo_indptr.values[4] = value; });
    mla([&](MlaDecodeCall& c) { c.kv_last_page_lens.values[1] = value; });
    mla([&](MlaDecodeCall& c) { c.kv_indices.values[1] = value; });
    mla([&](MlaDecodeCall& c) { c.max_seqlen_q = value; });
    mla([&](MlaDecodeCall& c) { c.page_size = value; });
  }
}

TEST(WrongCalls, RaiseWhatTheExtendKernelRaises) {
  const auto raised = [](const std::function<void(ExtendCall&)>& change,
                         std::string_view name = "Plain") {
    return extend(change, name).raised.value_or("");
  };
  EXPECT_THAT(raised([](ExtendCall& c) { c.seq_lens.values[2] = 1; }), HasSubstr("prefix len < 0"));
  EXPECT_THAT(raised([](ExtendCall& c) { c.seq_lens.values[2] = 5000; }), HasSubstr("columns"));
  EXPECT_THAT(raised([](ExtendCall& c) { c.req_pool_indices.values[0] = 50; }), HasSubstr("rows"));
  EXPECT_THAT(raised([](ExtendCall& c) { c.k_extend.reset(); }), HasSubstr("are required"));
  EXPECT_THAT(raised([](ExtendCall& c) { c.sliding_window_size = 4; }, "Tree"),
              HasSubstr("tree_mask"));
  EXPECT_THAT(raised([](ExtendCall& c) { c.max_len_extend = 6; }, "Tree"), HasSubstr("tree_mask"));
}

TEST(WrongCalls, SkipExtendRowsPastTheLongestLength) {
  const RunResult r = extend(
      [](ExtendCall& c) {
        ASSERT_EQ(c.extend_seq_lens.values[0], 37);
        c.max_len_extend = 5;
      },
      "Prefill");
  EXPECT_EQ(r.out.untouched[r.out.index(31, 0) / 64], 0);
  EXPECT_EQ(r.out.untouched[r.out.index(32, 0) / 64], 1);
  EXPECT_EQ(r.out.untouched[r.out.index(37, 0) / 64], 0) << "the next request's first row";
}

TEST(WrongCalls, StoreTheNewTokenWhereLocSays) {
  std::int64_t other = 0;
  const RunResult r = decode([&](DecodeCall& c) {
    other = c.loc.values[1];
    c.loc.values[0] = other;
  });
  EXPECT_THAT(r.damage, IsEmpty()) << "a store at a declared slot is the call's, not damage";
  EXPECT_TRUE(row_is_nan(r, 0)) << "its own slot still holds poison";
  const RunResult outside = decode([](DecodeCall& c) { c.loc.values[0] = 1 << 20; });
  EXPECT_THAT(outside.raised.value_or(""), HasSubstr("loc[0] = 1048576 is outside the pool"));
}

TEST(WrongCalls, StopAtAStoreToNobodysSlotOfASparsePool) {
  ScalarCase c = named(Signature::decode, "Plain");
  c.problem.pool.num_pages = 1 << 16;  // 256 MiB
  const RunResult r = run_changed<DecodeCall>(c, [](DecodeCall& call) {
    std::int64_t slot = 5;
    while (std::abs(slot - call.loc.values[0]) < 100) slot += 1000;
    call.loc.values[0] = slot;
  });
  EXPECT_THAT(r.raised.value_or("stored"), HasSubstr("nobody's slot"));
}

TEST(WrongCalls, TakeTheOneMlaLengthFromTheScalarNotFromQoIndptr) {
  const RunResult r = mla([](MlaDecodeCall& c) { c.max_seqlen_q = 2; });
  ASSERT_FALSE(r.raised) << r.raised.value_or("");
  EXPECT_EQ(r.out.untouched[r.out.index(7, 0) / 512], 0);
  EXPECT_EQ(r.out.untouched[r.out.index(8, 0) / 512], 1);
}

TEST(WrongCalls, AreNotSupportedWhereTheyCannotBeAddressed) {
  const ScalarCase& c = named(Signature::unified, "Plain");
  const TensorSource source(c.problem, c.recipe, 5);
  const Backend& backend = *select_backends("scalar.unified").front();
  const auto reason = [&](const std::function<void(UnifiedCall&)>& change) {
    Call call = call_of(c, source);
    change(std::get<UnifiedCall>(call));
    const Answer answer = backend.supports(call);
    EXPECT_FALSE(answer.yes);
    EXPECT_THROW(backend.run(call, source, {}), BackendError);
    return answer.reason;
  };
  EXPECT_THAT(reason([](UnifiedCall& u) { u.q.shape.pop_back(); }),
              HasSubstr("q has 2 dimensions"));
  EXPECT_THAT(reason([](UnifiedCall& u) { u.k.strides[3] = 2; }), HasSubstr("inside a row"));
  EXPECT_THAT(reason([](UnifiedCall& u) { u.v.dtype = Dtype::int32; }), HasSubstr("v is int32"));
  EXPECT_THAT(reason([](UnifiedCall& u) { u.seqused_k.recorded = false; }),
              HasSubstr("seqused_k were not recorded"));
  EXPECT_THAT(reason([](UnifiedCall& u) { u.block_table.values.pop_back(); }),
              HasSubstr("block_table holds"));
  EXPECT_THAT(reason([](UnifiedCall& u) { u.qq_bias = contiguous(Dtype::f32, {4, 4}); }),
              HasSubstr("qq_bias"));
  EXPECT_THAT(select_backends("scalar.decode").front()->supports(call_of(c, source)).reason,
              HasSubstr("takes decode calls, not unified"));
}

TEST(Counters, ShowExpandedHeadsAsLoadedOnceEach) {
  const auto bytes = [](const std::function<void(UnifiedCall&)>& change, const char* counter) {
    ScalarCase c = named(Signature::unified, "Plain");
    c.problem.model.num_kv_heads = 1;
    return run_changed<UnifiedCall>(c, change).counters.at(counter);
  };
  const auto grouped = [](UnifiedCall&) {};
  const auto expanded = [](UnifiedCall& c) {
    for (TensorMeta* pool : {&c.k, &c.v}) {
      pool->shape[2] = 8;
      pool->strides[2] = 0;
    }
  };
  EXPECT_EQ(bytes(grouped, "kv_bytes"), (135 + 9 + 3 + 305) * 2 * 128);
  EXPECT_EQ(bytes(grouped, "kv_bytes_minimum"), bytes(grouped, "kv_bytes"));
  EXPECT_EQ(bytes(expanded, "kv_bytes"), 8 * bytes(grouped, "kv_bytes"));
  EXPECT_EQ(bytes(expanded, "kv_bytes_minimum"), bytes(grouped, "kv_bytes"));
}

TEST(Counters, LeaveValuesOfExpandedHeadsAlone) {
  ScalarCase c = named(Signature::unified, "Plain");
  c.problem.model.num_kv_heads = 1;
  const RunResult grouped = run_changed<UnifiedCall>(c, [](UnifiedCall&) {});
  const RunResult expanded = run_changed<UnifiedCall>(c, [](UnifiedCall& call) {
    for (TensorMeta* pool : {&call.k, &call.v}) {
      pool->shape[2] = 8;
      pool->strides[2] = 0;
    }
  });
  EXPECT_EQ(grouped.out.values, expanded.out.values);
}

// A caller that forgets the causal flag has not forgotten the window: what read() says, too.
TEST(RowsWithoutACausalOrder, KeepTheirWindow) {
  const RequestShape shape{.rows = 3, .length = 10, .window = 4, .causal = false};
  EXPECT_EQ(seen_by(shape, 0, Fault::none).begin, 4);
  EXPECT_EQ(seen_by(shape, 2, Fault::none).begin, 6);
  EXPECT_EQ(seen_by(shape, 0, Fault::none).end, 10);
}

}  // namespace
}  // namespace attest
