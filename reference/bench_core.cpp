#include "reference/bench_core.hpp"

#include <sys/resource.h>

#include <Eigen/Core>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <random>
#include <span>
#include <vector>

#include "memory/tensor_source.hpp"
#include "reference/attention.hpp"
#include "reference/attention_core.hpp"
#include "reference/parallel.hpp"

namespace attest {
namespace {

constexpr std::int64_t keys = 40960;
constexpr std::int64_t block = 512;
constexpr std::int64_t head_dim = 128;
constexpr int repeats = 5;

double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double best_of(const std::function<void()>& work) {
  double best = seconds_of(work);
  for (int i = 1; i < repeats; ++i) best = std::min(best, seconds_of(work));
  return best;
}

void fill_normal(std::span<double> values, double sigma) {
  std::mt19937 random(1);
  std::normal_distribution<double> normal(0, sigma);
  for (double& x : values) x = normal(random);
}

double gemm_seconds(std::size_t threads, Eigen::Index n) {
  const Eigen::MatrixXd a = Eigen::MatrixXd::Random(n, n);
  const Eigen::MatrixXd b = Eigen::MatrixXd::Random(n, n);
  Eigen::MatrixXd c = Eigen::MatrixXd::Zero(n, n);
  const auto count = static_cast<Eigen::Index>(threads);
  return best_of([&] {
    std::atomic<Eigen::Index> next = 0;
    run_on_threads(threads, [&] {
      const Eigen::Index i = next++;
      const Eigen::Index first = n * i / count;
      const Eigen::Index columns = n * (i + 1) / count - first;
      c.middleCols(first, columns).noalias() = a * b.middleCols(first, columns);
    });
  });
}

double core_seconds(std::size_t threads, bool envelopes) {
  const CoreShape shape{.tokens = 4,
                        .group = 16,
                        .head_dim = head_dim,
                        .v_head_dim = head_dim,
                        .softcap = 0,
                        .envelopes = envelopes,
                        .v_is_in_k = false};
  AlignedVector<double> q(static_cast<std::size_t>(shape.packed() * head_dim));
  fill_normal(q, 0.1);
  std::vector<CoreWorker> workers(threads);
  std::vector<PartialAttention> sums(threads, PartialAttention(shape));
  for (CoreWorker& worker : workers) {
    worker.prepare(shape, block);
    fill_normal(worker.k(), 1);
    fill_normal(worker.v(), 1);
  }
  const std::vector<std::vector<StreamInterval>> visible(static_cast<std::size_t>(shape.tokens),
                                                         {{0, keys}});
  return best_of([&] {
    std::atomic<std::size_t> next_thread = 0;
    std::atomic<std::int64_t> next_block = 0;
    run_on_threads(threads, [&] {
      const std::size_t t = next_thread++;
      for (std::int64_t at = block * next_block++; at < keys; at = block * next_block++) {
        workers[t].absorb(q, at, block, visible, sums[t]);
      }
    });
  });
}

Problem long_verify() {
  Problem p;
  p.model = {.num_q_heads = 32, .num_kv_heads = 2, .head_dim = head_dim, .v_head_dim = head_dim};
  p.mode = Mode::target_verify;
  p.pool = {.page_size = 64, .num_pages = 8 * (keys / 64)};
  for (std::int64_t i = 0; i < 8; ++i) {
    p.requests.push_back({.sequence = i, .committed = keys - 4, .new_tokens = 4});
  }
  return p;
}

double fill_seconds(const TensorSource& source, std::size_t threads) {
  std::atomic<std::int64_t> next = 0;
  const Problem& p = source.problem();
  return seconds_of([&] {
    run_on_threads(threads, [&] {
      std::vector<double> row(head_dim);
      const auto tasks = static_cast<std::int64_t>(p.requests.size()) * p.model.num_kv_heads;
      for (std::int64_t i = next++; i < tasks; i = next++) {
        for (std::int64_t j = 0; j < keys; ++j) {
          const ContentKey key{i / p.model.num_kv_heads, j};
          source.k_row(key, i % p.model.num_kv_heads, row);
          source.v_row(key, i % p.model.num_kv_heads, row);
        }
      }
    });
  });
}

}  // namespace

CoreTimes measure_reference_core(int threads) {
  constexpr std::int64_t n = 2048;
  const std::size_t count = thread_count(threads);
  CoreTimes times;
  times.threads = static_cast<int>(count);
  times.gemm_gflops = 2e-9 * n * n * n / gemm_seconds(count, n);
  times.core_seconds = core_seconds(count, false);
  times.envelope_seconds = core_seconds(count, true);
  times.core_gflops = 2e-9 * 64 * (2 * head_dim) * keys / times.core_seconds;
  return times;
}

CaseTimes measure_reference_case(int threads) {
  const TensorSource source(long_verify(), Recipe::normal, 1);
  const Attended meaning = attended(source.problem());
  CaseTimes times;
  times.threads = static_cast<int>(thread_count(threads));
  times.seconds = seconds_of(
      [&] { reference_attention(meaning, source, {.envelopes = true, .threads = threads}); });
  times.fill_seconds = fill_seconds(source, thread_count(threads));
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  times.peak_rss = std::int64_t{1024} * usage.ru_maxrss;
  return times;
}

}  // namespace attest
