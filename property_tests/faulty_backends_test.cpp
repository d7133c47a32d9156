#include <gtest/gtest.h>

#include "property_tests/every_backend.hpp"
#include "property_tests/generators.hpp"
#include "property_tests/judge.hpp"

namespace attest {
namespace {

constexpr std::uint64_t enough = 600;

/// Faults of 32-bit offsets show on calls whose arrays are int32, which the rules forbid there.
void add_metadata_fault(const Backend& backend, Case& c) {
  const std::string_view name = backend.name();
  if (name.find("_in_seqused_dtype") != std::string_view::npos) c.fault = "seqused_k_int32";
  if (name.find("slot_offset_in_table_dtype.extend") != std::string_view::npos) {
    c.fault = "req_to_token_int32";
  }
}

bool is_caught(const Backend& backend, std::uint64_t index, Judgement& judgement) {
  const Capabilities& capabilities = backend.capabilities();
  Case c = generate(1, index,
                    {.signature = capabilities.signature,
                     .capabilities = &capabilities,
                     .max_kv = 256,
                     .max_requests = 4});
  add_metadata_fault(backend, c);
  JudgeOptions options;
  options.rules = RulesMode::report;
  options.time_limit = std::chrono::seconds(20);
  options.reference_threads = 1;
  judgement = judge(c, backend, options);
  const Verdict verdict = judgement.verdict;
  return verdict == Verdict::mismatch || verdict == Verdict::crashed || verdict == Verdict::hung;
}

class FaultyKernels : public EveryBackend {};

INSTANTIATE_TEST_SUITE_P(, FaultyKernels, testing::ValuesIn(names_of("faulty")), test_name_of);

TEST_P(FaultyKernels, AreCaughtByAGeneratedCase) {
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

}  // namespace
}  // namespace attest
