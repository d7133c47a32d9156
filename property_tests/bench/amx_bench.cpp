#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>

#include "backends/amx/engine_lease.hpp"
#include "backends/registry.hpp"
#include "property_tests/bench/amx_work.hpp"
#include "property_tests/bench/bench.hpp"
#include "property_tests/generators.hpp"
#include "property_tests/judge.hpp"

namespace attest {
namespace {

constexpr int runs = 3;

int cores() { return static_cast<int>(std::max(1U, std::thread::hardware_concurrency())); }

/// 1, 2, 4 .. up to every core.
std::vector<int> thread_counts() {
  std::vector<int> counts;
  for (int n = 1; n < cores(); n *= 2) counts.push_back(n);
  counts.push_back(cores());
  return counts;
}

/// Seconds of the work on each thread count.
std::map<int, double> timed(const std::function<amx::KernelOutcome(int)>& work) {
  std::map<int, double> seconds;
  for (const int threads : thread_counts()) {
    seconds[threads] = best_seconds(runs, [&] {
      const amx::KernelOutcome outcome = work(threads);
      if (outcome.raised) throw std::runtime_error("bench: " + *outcome.raised);
    });
  }
  return seconds;
}

Measurement plain(std::string id, std::string says, double value, std::string unit, int threads) {
  return {.id = std::move(id),
          .says = std::move(says),
          .value = value,
          .unit = std::move(unit),
          .target = std::nullopt,
          .threads = threads};
}

Measurement share(std::string id, std::string says, double value, std::optional<double> target,
                  int threads) {
  return {.id = std::move(id),
          .says = std::move(says),
          .value = value,
          .unit = "x",
          .target = target,
          .threads = threads};
}

void add_speedups(std::vector<Measurement>& all, const std::string& id, const std::string& what,
                  const std::map<int, double>& seconds) {
  for (const auto& [threads, time] : seconds) {
    if (threads == 1) continue;
    all.push_back(share(id + ".speedup", what + ", over one thread", seconds.at(1) / time,
                        std::nullopt, threads));
  }
}

void measure_prefill(std::vector<Measurement>& all) {
  AmxWork work({{0, 4096}});
  const std::string what = "4k prefill, 32:8 heads of 128";
  const auto seconds = timed([&](int threads) { return work.extend(threads); });
  for (const int threads : {1, cores()}) {
    const double peak = peak_gflops(threads);
    const double rate = work.extend_flops() / seconds.at(threads) / 1e9;
    all.push_back(plain("amx.peak", "tdpbf16ps on registers alone", peak, "GFLOP/s", threads));
    all.push_back(plain("amx.prefill", what, rate, "GFLOP/s", threads));
    all.push_back(share("amx.prefill.peak_share", what + ", visible pairs only, over that peak",
                        rate / peak, 0.4, threads));
    if (cores() == 1) break;
  }
  add_speedups(all, "amx.prefill", what, seconds);
}

/// GB/s at which the work's K and V can be read, per thread count: the better of one stream a
/// thread and four.
std::map<int, double> read_rates(const AmxWork& work) {
  std::map<int, double> rates;
  std::uint64_t sum = 0;
  for (const int threads : thread_counts()) {
    for (const int streams : {1, 4}) {
      const double seconds = best_seconds(runs, [&] { sum += work.read_pools(threads, streams); });
      rates[threads] = std::max(rates[threads], work.kv_bytes() / seconds / 1e9);
    }
  }
  if (sum == 0) throw std::runtime_error("bench: the pools are empty");
  return rates;
}

void measure_long_context(std::vector<Measurement>& all, Pages pages) {
  AmxWork work(long_verify_batch(), pages);
  const bool huge = pages == Pages::huge;
  const std::string tail = huge ? ".huge" : "";
  const std::string batch = std::string("8 requests, prefixes 4k to 40k, 32:8 heads of 128") +
                            (huge ? ", pool advised to huge pages" : "");
  const std::map<int, double> bandwidth = read_rates(work);
  for (const auto& [threads, rate] : bandwidth) {
    if (threads != 1 && threads != cores()) continue;
    all.push_back(
        plain("amx.read" + tail, "the same K and V only read, " + batch, rate, "GB/s", threads));
  }
  struct Step {
    std::string id, says;
    std::function<amx::KernelOutcome(int)> run;
  };
  const Step steps[] = {{"amx.verify" + tail, "verification of 4 to 8 drafts, " + batch,
                         [&](int threads) { return work.extend(threads); }},
                        {"amx.decode" + tail, "decode, 8 splits, " + batch,
                         [&](int threads) { return work.decode(threads); }}};
  for (const Step& step : steps) {
    const auto seconds = timed(step.run);
    for (const auto& [threads, time] : seconds) {
      if (threads != 1 && threads != cores()) continue;
      const double rate = work.kv_bytes() / time / 1e9;
      const bool gated = threads == cores();
      all.push_back(plain(step.id, step.says, rate, "GB/s", threads));
      all.push_back(share(step.id + ".read_share", step.says + ", over the read rate",
                          rate / bandwidth.at(threads),
                          gated ? std::optional<double>(0.6) : std::nullopt, threads));
    }
    add_speedups(all, step.id, step.says, seconds);
  }
}

/// Whole judgements as `attest run` makes them, on two threads.
Measurement judged_rate(const std::string& engine) {
  constexpr std::uint64_t cases = 100;
  const auto backends = select_backends("amx.extend@" + engine + ",amx.decode@" + engine);
  std::atomic<std::uint64_t> next{0};
  std::atomic<bool> failed{false};
  const auto work = [&] {
    JudgeOptions options;
    options.reference_threads = 1;
    for (std::uint64_t i = next++; i < cases; i = next++) {
      const Backend& backend = *backends[i % backends.size()];
      const Capabilities& can = backend.capabilities();
      const Case c = generate(1, i, {.signature = can.signature, .capabilities = &can});
      const Verdict verdict = judge(c, backend, options).verdict;
      if (verdict != Verdict::pass && verdict != Verdict::untrusted) failed = true;
    }
  };
  const double seconds = best_seconds(1, [&] {
    const std::jthread other(work);
    work();
  });
  if (failed) throw std::runtime_error("bench: a generated case did not pass");
  return {.id = "amx.judged",
          .says = "generated extend and decode cases, judged as `attest run` does",
          .value = static_cast<double>(cases) / seconds,
          .unit = "cases/s",
          .target = 15.0,
          .threads = 2};
}

Measurement emulated_case() {
  AmxWork work(typical_batch());
  const double seconds = best_seconds(5, [&] {
    if (const auto outcome = work.extend(1); outcome.raised) {
      throw std::runtime_error("bench: " + *outcome.raised);
    }
  });
  return {.id = "amx.emulated_case",
          .says = "verify, 8 requests x 4 drafts, 32:8 heads of 128, 1,024 keys, emulated",
          .value = seconds,
          .unit = "s",
          .target = 0.15,
          .target_is_floor = false};
}

}  // namespace

std::vector<Measurement> measure_amx() {
  std::vector<Measurement> all;
  const amx::Choice& choice = amx::process_engine();
  if (choice.engine == amx::Engine::off) return all;
  {
    const amx::EngineLease lease(choice.engine);
    if (choice.engine == amx::Engine::native) {
      measure_prefill(all);
      measure_long_context(all, Pages::as_allocated);
      measure_long_context(all, Pages::huge);
    } else {
      all.push_back(emulated_case());
    }
  }
  all.push_back(judged_rate(std::string(amx::name(choice.engine))));
  return all;
}

}  // namespace attest
