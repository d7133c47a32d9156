#include "backends/faulty/amx_faults.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <iterator>
#include <set>

#include "backends/amx/engine_lease.hpp"
#include "backends/registry.hpp"
#include "contracts/rules.hpp"
#include "contracts/signatures.hpp"

namespace attest {
namespace {

/// Three requests; encoders and prefixes as asked. More than 32 new tokens in each, one number for
/// all, so that masks and row blocks show.
Problem problem_of(Signature signature, std::int64_t encoder, std::int64_t committed) {
  Problem p;
  p.model.num_q_heads = 4;
  p.model.num_kv_heads = 2;
  p.mode = signature == Signature::extend ? Mode::target_verify : Mode::decode;
  for (std::int64_t i = 0; i < 3; ++i) {
    p.requests.push_back({.sequence = i + 1,
                          .committed = committed > 0 ? committed + 7 * i : 0,
                          .new_tokens = signature == Signature::extend ? 40 : 1,
                          .encoder_tokens = encoder});
  }
  p.pool.num_pages = 128;
  return p;
}

Call lowered(Signature signature, const Problem& p) {
  const TensorSource source(p, Recipe::normal, 3);
  return std::get<Call>(lower(signature, p, source.slots()));
}

IntArray full_mask(const ExtendCall& c) {
  const auto side = static_cast<std::size_t>(c.max_len_extend);
  IntArray mask = int_array(Dtype::boolean,
                            std::vector<std::int64_t>(c.seq_lens.values.size() * side * side, 1));
  return mask;
}

/// A call that the defect answers in its own way, made from a legal one.
struct Shown {
  const char* id;
  std::int64_t encoder, committed;
  bool softcap;
  void (*spoil)(ExtendCall&);
  void (*spoil_decode)(DecodeCall&);
  bool honest_refuses;  ///< the honest kernel names the argument instead of computing
};

constexpr auto keep = [](ExtendCall&) {};

const Shown shown[] = {
    {"logit_cap_ignored", 0, 50, true, keep, nullptr, false},
    {"rows_past_max_len_skipped", 0, 50, false, [](ExtendCall& c) { c.max_len_extend = 7; },
     nullptr, true},
    {"window_overwrites_encoder", 9, 50, false, nullptr,
     [](DecodeCall& c) { c.sliding_window_size = 20; }, false},
    {"mask_cut_at_the_row_block", 0, 50, false, [](ExtendCall& c) { c.tree_mask = full_mask(c); },
     nullptr, false},
    {"hidden_row_is_nan", 0, 0, false,
     [](ExtendCall& c) {
       c.tree_mask = full_mask(c);
       for (std::size_t key = 0; key < 40; ++key) c.tree_mask->values[40 + key] = 0;
     },
     nullptr, false},
    {"cross_attention_takes_seq_lens", 9, 50, false,
     [](ExtendCall& c) {
       c.is_cross_attn = true;
       c.encoder_lens.reset();
     },
     [](DecodeCall& c) {
       c.is_cross_attn = true;
       c.encoder_lens.reset();
     },
     true},
    {"output_taken_as_contiguous", 0, 50, false, nullptr,
     [](DecodeCall& c) { c.output.strides = {64, 3 * 64, 1}; }, true},
    {"rows_past_the_batch_skipped", 0, 50, false, nullptr,
     [](DecodeCall& c) {
       c.seq_lens = int_array(Dtype::int64, {c.seq_lens[0], c.seq_lens[1]});
       c.req_pool_indices = int_array(Dtype::int64, {c.req_pool_indices[0], c.req_pool_indices[1]});
       c.loc = int_array(Dtype::int64, {c.loc[0], c.loc[1]});
     },
     true},
    {"left_over_heads_skipped", 0, 50, false, nullptr,
     [](DecodeCall& c) {
       c.query = contiguous(Dtype::bf16, {3, 5, 64});
       c.output = contiguous(Dtype::bf16, {3, 5, 64});
     },
     true},
};

class AmxFaults : public testing::TestWithParam<Shown> {
 protected:
  void SetUp() override {
    if (!amx::possible(amx::Engine::patch)) {
      GTEST_SKIP() << amx::possible(amx::Engine::patch).reason;
    }
    if (amx::process_engine().engine == amx::Engine::native) {
      GTEST_SKIP() << "emulation needs a process of its own here; the judge's tests give it one";
    }
  }
};

INSTANTIATE_TEST_SUITE_P(, AmxFaults, testing::ValuesIn(shown),
                         [](const auto& info) { return std::string(info.param.id); });

TEST_P(AmxFaults, ShowOnTheCallThatTheirRuleRejects) {
  const auto faults = all_amx_faults();
  const auto fault = std::find_if(faults.begin(), faults.end(),
                                  [](const AmxFault& f) { return f.id == GetParam().id; });
  ASSERT_NE(fault, faults.end());
  for (const Signature signature : fault->signatures) {
    Problem p = problem_of(signature, GetParam().encoder, GetParam().committed);
    if (GetParam().softcap) p.model.softcap = 0.5;
    const TensorSource source(p, Recipe::normal, 3);
    Call call = lowered(signature, p);
    if (signature == Signature::extend) GetParam().spoil(std::get<ExtendCall>(call));
    if (signature == Signature::decode) GetParam().spoil_decode(std::get<DecodeCall>(call));
    const std::string names = std::string(name(signature)) + "@patch";
    const Backend& honest = *select_backends("amx." + names).front();
    const Backend& faulty =
        *select_backends("faulty-" + std::string(fault->id) + "." + names).front();

    const RunResult right = honest.run(call, source, {});
    const RunResult wrong = faulty.run(call, source, {});
    EXPECT_EQ(right.raised.has_value(), GetParam().honest_refuses) << right.raised.value_or("");
    EXPECT_EQ(wrong.raised, std::nullopt);  // in silence
    EXPECT_TRUE(right.raised || wrong.out.values != right.out.values ||
                wrong.out.untouched != right.out.untouched);

    // What the kernel with the defect needs is a rule of the contract.
    const Report report = check(call, {p, source.slots(), strict_capabilities()});
    EXPECT_TRUE(std::any_of(report.findings().begin(), report.findings().end(),
                            [&](const Finding& f) { return f.rule == fault->rule; }))
        << fault->rule << " of " << report.findings().size() << " findings";
  }
}

TEST(AmxFaultTable, ListsEachOnceWithARowInTheDocumentation) {
  std::ifstream file(ATTEST_SOURCE_DIR "/docs/amx.md");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  std::set<std::string_view> ids;
  std::set<amx::Defect> defects;
  for (const AmxFault& fault : all_amx_faults()) {
    EXPECT_TRUE(ids.insert(fault.id).second) << fault.id;
    EXPECT_TRUE(defects.insert(fault.defect).second) << fault.id;
    EXPECT_FALSE(fault.says.empty() || fault.shows.empty() || fault.source.empty()) << fault.id;
    EXPECT_NE(text.find("| `" + std::string(fault.id) + "` | " + std::string(fault.says) + " |"),
              std::string::npos)
        << fault.id;
  }
}

TEST(AmxFaultTable, NamesRulesThatExist) {
  for (const AmxFault& fault : all_amx_faults()) {
    if (fault.rule.empty()) continue;
    EXPECT_NE(find_rule(fault.rule), nullptr) << fault.rule;
  }
}

}  // namespace
}  // namespace attest
