#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>

#include "property_tests/every_backend.hpp"
#include "property_tests/generators.hpp"
#include "property_tests/judge.hpp"

namespace attest {
namespace {

constexpr std::uint64_t enough = 600;

/// Faults that show only on calls which the rules forbid: part of the backend's name, and the
/// metadata fault that makes such a call.
constexpr std::pair<std::string_view, const char*> needs[] = {
    {"_in_seqused_dtype.", "seqused_k_int32"},
    {"slot_offset_in_table_dtype.extend", "req_to_token_int32"},
    {"slot_offset_in_int32.", "req_to_token_int32"},
    {"rows_past_max_len_skipped.", "max_len_extend_too_small"},
    {"window_overwrites_encoder.", "window_beside_an_encoder"},
    {"cross_attention_takes_seq_lens.", "encoder_lens_missing"},
    {"output_taken_as_contiguous.", "output_transposed"},
    {"int64_offsets_read_as_int32.", "mla_kv_indptr_int64"},
};

/// Faults that no generated case can show, and what shows them instead.
constexpr std::pair<std::string_view, const char*> elsewhere[] = {
    {"mask_cut_at_the_row_block.", "every draft tree looks back: faulty_test has the mask"},
    {"hidden_row_is_nan.", "every row sees its own key: faulty_test has the mask"},
    {"scratch_of_the_last_item.", "no visible key holds NaN: amx_test puts one there"},
    {"nan_key_dropped.", "no visible key holds NaN: amx_test puts one there"},
    {"rows_past_the_batch_skipped.", "calls have a row per request: faulty_test has another"},
    {"left_over_heads_skipped.", "kv heads divide the query heads: faulty_test has others"},
    {"v_before_the_window_read.",
     "cells before a window name the request's own pages: attest mutants has others"},
    {"table_read_to_the_tiles_end.",
     "tables of right calls end on a tile: attest mutants cuts one"},
    {"merge_stops_at_the_first_row.mla_decode",
     "hardly ever does an edge of 128 keys lie among an MLA step's tokens: attest mutants has it"},
    {"keys_past_16k_ignored.", "no case is as long: attest mutants has longer ones"},
    {"head_dim_tail_dropped.extend", "head sizes of extend are multiples of 32"},
    {"split_remainder_lost.decode", "eight splits of at most one tile each leave none over"},
    {"sum_of_rounded_p.", "within every bound: the one that must not be caught"},
    {"splits_from_max_seqlen_k.", "within the bound: a relation tells it"},
    {"splits_from_the_rows.", "within the bound: a relation tells it"},
    {"store_rounded_to_16_bytes.",
     "every slot is a multiple of 16 bytes: attest mutants has others"},
};

/// Faults of addresses, which no launch over a small pool can show: those are not worth their time.
constexpr std::string_view of_large_pools[] = {"_in_seqused_dtype.",
                                               "slot_offset_in_",
                                               "zeros_past_2_gib.",
                                               "aliases_past_4_gib.",
                                               "descriptor_size_in_32_bits.",
                                               "store_offset_in_int32.",
                                               "page_id_in_16_bits.",
                                               "_elements_int32.",
                                               "_bytes_int32.",
                                               "_bytes_uint32."};

bool may_show(const Backend& backend, const Case& c) {
  const auto named = [&](std::string_view part) {
    return backend.name().find(part) != std::string_view::npos;
  };
  if (std::none_of(std::begin(of_large_pools), std::end(of_large_pools), named)) return true;
  const std::vector<std::string> features = features_of(c);
  return std::find(features.begin(), features.end(), "pool past 2 GiB") != features.end();
}

void add_metadata_fault(const Backend& backend, Case& c) {
  for (const auto& [part, fault] : needs) {
    if (backend.name().find(part) != std::string_view::npos) c.fault = fault;
  }
}

bool is_caught(const Backend& backend, std::uint64_t index, Judgement& judgement) {
  const Capabilities& capabilities = backend.capabilities();
  Case c = generate(1, index,
                    {.signature = capabilities.signature,
                     .capabilities = &capabilities,
                     .max_kv = 256,
                     .max_requests = 4});
  if (!may_show(backend, c)) return false;
  add_metadata_fault(backend, c);
  JudgeOptions options;
  options.rules = RulesMode::report;
  options.time_limit = std::chrono::seconds(3);
  options.reference_threads = 1;
  judgement = judge(c, backend, options);
  const Verdict verdict = judgement.verdict;
  return verdict == Verdict::mismatch || verdict == Verdict::crashed || verdict == Verdict::hung;
}

class FaultyKernels : public EveryBackend {};

/// Offsets that wrap have a cell of the boundary lattice each: large_kv_test.cpp.
std::vector<std::string> shown_by_generated_cases() {
  std::vector<std::string> names = names_of("faulty");
  std::erase_if(names, [](const std::string& name) { return name.starts_with("faulty-wrap-"); });
  return names;
}
INSTANTIATE_TEST_SUITE_P(, FaultyKernels, testing::ValuesIn(shown_by_generated_cases()),
                         test_name_of);

TEST_P(FaultyKernels, AreCaughtByAGeneratedCase) {
  for (const auto& [part, where] : elsewhere) {
    if (backend().name().find(part) != std::string_view::npos) GTEST_SKIP() << where;
  }
  Judgement judgement;
  for (std::uint64_t i = 0; i < enough; ++i) {
    if (!is_caught(backend(), i, judgement)) continue;
    RecordProperty("cases_to_first_kill", static_cast<int>(i) + 1);
    std::cout << "caught by case " << i << ": " << judgement.reason << "; " << judgement.diagnosis
              << '\n';
    return;
  }
  FAIL() << "not caught by " << enough << " generated cases";
}

struct Seeded {
  const char* backend;
  std::int64_t most_tokens;  ///< keys and new tokens the smallest case may still have
};

/// The smallest case that still shows a fault is small: a person can read it.
TEST(ShrunkFaults, FitInAFewTokens) {
  constexpr Seeded seeded[] = {{"faulty-causal_one_too_long.unified@cpu", 2},
                               {"faulty-first_key_ignored.unified@cpu", 2},
                               {"faulty-window_one_too_short.extend@cpu", 4},
                               {"faulty-sink_missing.decode@cpu", 1},
                               {"faulty-tree_mask_ignored.extend@cpu", 4}};
  for (const Seeded& fault : seeded) {
    const Backend& backend = *select_backends(fault.backend).front();
    const Capabilities& capabilities = backend.capabilities();
    const auto fails = [&](const Case& c) {
      const JudgeOptions quick = {.both_poisons = false, .diagnose = false};
      return judge(c, backend, quick).verdict == Verdict::mismatch;
    };
    Case failing;
    for (std::uint64_t i = 0; i < enough; ++i) {
      failing = generate(2, i,
                         {.signature = capabilities.signature,
                          .capabilities = &capabilities,
                          .max_kv = 128,
                          .max_requests = 4});
      if (fails(failing)) break;
    }
    const Problem p = shrink(failing, 600, fails).best.problem;
    EXPECT_EQ(p.requests.size(), 1U) << fault.backend << ' ' << describe(p);
    EXPECT_LE(p.max_kv_len(), fault.most_tokens) << fault.backend << ' ' << describe(p);
    EXPECT_EQ(p.model.num_q_heads, 1) << fault.backend << ' ' << describe(p);
  }
}

}  // namespace
}  // namespace attest
