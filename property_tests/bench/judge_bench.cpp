#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <thread>

#include "backends/registry.hpp"
#include "property_tests/bench/bench.hpp"
#include "property_tests/bench/small_cases.hpp"
#include "property_tests/judge.hpp"

namespace attest {
namespace {

constexpr int rounds = 8;  ///< of the list, in one timing

void judge_all(const std::vector<Case>& cases, const Backend& backend, unsigned threads) {
  JudgeOptions options;
  options.reference_threads = 1;
  options.both_poisons = false;
  options.diagnose = false;
  std::atomic<std::size_t> next{0};
  std::atomic<bool> failed{false};
  const auto work = [&] {
    for (std::size_t i = next++; i < cases.size() * rounds; i = next++) {
      const Verdict verdict = judge(cases[i % cases.size()], backend, options).verdict;
      if (verdict != Verdict::pass && verdict != Verdict::untrusted) failed = true;
    }
  };
  std::vector<std::jthread> pool;
  for (unsigned t = 1; t < threads; ++t) pool.emplace_back(work);
  work();
  pool.clear();
  if (failed) throw std::runtime_error("bench: a case of the small list did not pass");
}

/// The two parts a judgement cannot do without, alone.
double parts_alone(const std::vector<Case>& cases, const Backend& backend) {
  return best_seconds(3, [&] {
    for (const Case& c : cases) {
      const TensorSource source(c.problem, c.recipe, c.seed, c.poison);
      const auto call = call_of(c, source.slots());
      static_cast<void>(backend.run(std::get<Call>(call), source, {}));
      ReferenceOptions options;
      options.threads = 1;
      static_cast<void>(reference_attention(attended(c.problem), source, options));
    }
  });
}

}  // namespace

std::vector<Measurement> measure_judge() {
  const Backend& backend = *select_backends("scalar.unified@cpu").front();
  const std::vector<Case> cases = small_cases();
  const unsigned cores = std::max(1U, std::thread::hardware_concurrency());
  const unsigned two = std::min(2U, cores);
  const auto judged = static_cast<double>(cases.size() * rounds);
  const double seconds = best_seconds(3, [&] { judge_all(cases, backend, two); });
  const double alone = best_seconds(3, [&] { judge_all(cases, backend, 1); });
  const double parts = parts_alone(cases, backend) * rounds;
  const std::string what = std::to_string(cases.size()) + " cases, 8:2 heads of 64, KV <= 512";
  return {{.id = "judge.rate",
           .says = what + ", one launch and one reference each, on scalar.unified@cpu",
           .value = judged / seconds,
           .unit = "cases/s",
           .target = 150.0,
           .threads = static_cast<int>(two)},
          {.id = "judge.overhead",
           .says = "whole judgement over its launch and reference alone, one thread",
           .value = alone / parts,
           .unit = "x",
           .target = std::nullopt},
          {.id = "judge.two_threads",
           .says = "cases/s of two threads over one",
           .value = alone / seconds,
           .unit = "x",
           .target = std::nullopt,
           .threads = static_cast<int>(two)}};
}

}  // namespace attest
