#include "property_tests/bench/amx_work.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <numeric>
#include <span>
#include <thread>

#include "backends/amx/parallel.hpp"
#include "backends/amx/tile.hpp"
#include "property_tests/bench/bench.hpp"

namespace attest {
namespace {

constexpr std::int64_t q_heads = 32;
constexpr std::int64_t kv_heads = 8;
constexpr std::int64_t dim = 128;
constexpr std::int64_t slots_per_run = 16;
constexpr std::int64_t decode_splits = 8;

/// bf16 between -2 and 2 without denormals: sign, exponent 0x7b..0x7e, mantissa.
amx::Bf16 element(std::uint64_t bits) {
  const auto sign = static_cast<std::uint32_t>(bits & 0x8000);
  const auto exponent = static_cast<std::uint32_t>(0x7b + ((bits >> 7) & 3)) << 7;
  return static_cast<amx::Bf16>(sign | exponent | static_cast<std::uint32_t>(bits & 0x7f));
}

void fill_random(std::span<amx::Bf16> out, std::uint64_t seed) {
  std::uint64_t state = seed * 0x9e3779b97f4a7c15ULL + 1;
  for (amx::Bf16& value : out) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    value = element(state);
  }
}

std::vector<amx::Bf16> random_rows(std::size_t count, std::uint64_t seed) {
  std::vector<amx::Bf16> rows(count);
  fill_random(rows, seed);
  return rows;
}

std::size_t elements(std::int64_t rows, std::int64_t heads) {
  return static_cast<std::size_t>(rows * heads * dim);
}

/// Slot runs 0 .. count-1 in a scattered order: multiplication by a number prime to `count`.
std::int64_t scattered(std::int64_t run, std::int64_t count) {
  std::int64_t step = count * 5 / 8 + 1;
  while (std::gcd(step, count) != 1) ++step;
  return run * step % count;
}

double visible_pairs(const AmxWork::Row& row) {
  const auto fresh = static_cast<double>(row.fresh);
  return fresh * static_cast<double>(row.committed) + fresh * (fresh + 1) / 2;
}

}  // namespace

AmxWork::AmxWork(std::vector<Row> rows, Pages pages) : rows_(std::move(rows)) {
  std::int64_t runs = 0;
  for (const Row& row : rows_) {
    const std::int64_t length = row.committed + row.fresh;
    columns_ = std::max(columns_, length);
    runs += (length + slots_per_run - 1) / slots_per_run;
    starts_.push_back(total_rows_);
    fresh_.push_back(row.fresh);
    lengths_.push_back(length);
    pool_rows_.push_back(static_cast<std::int64_t>(pool_rows_.size()));
    total_rows_ += row.fresh;
  }
  table_.resize(rows_.size() * static_cast<std::size_t>(columns_));
  std::int64_t run = 0;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    for (std::int64_t t = 0; t < lengths_[i]; ++t) {
      const std::int64_t mine = run + t / slots_per_run;
      table_[i * static_cast<std::size_t>(columns_) + static_cast<std::size_t>(t)] =
          scattered(mine, runs) * slots_per_run + t % slots_per_run;
    }
    run += (lengths_[i] + slots_per_run - 1) / slots_per_run;
  }
  q_ = random_rows(elements(total_rows_, q_heads), 1);
  k_ = PoolMemory(elements(runs * slots_per_run, kv_heads), pages);
  v_ = PoolMemory(elements(runs * slots_per_run, kv_heads), pages);
  fill_random(k_.values(), 2);
  fill_random(v_.values(), 3);
  k_new_ = random_rows(elements(total_rows_, kv_heads), 4);
  v_new_ = random_rows(elements(total_rows_, kv_heads), 5);
  out_.resize(elements(total_rows_, q_heads));
}

void AmxWork::fill(amx::KernelArguments& args, int threads) {
  args.batch = static_cast<std::int64_t>(rows_.size());
  args.num_q_heads = q_heads;
  args.num_kv_heads = kv_heads;
  args.shape = {dim, dim, 0.08838834764F, 0};
  args.q = {q_.data(), q_heads * dim, dim};
  args.k_pool = {k_.values().data(), kv_heads * dim, dim};
  args.v_pool = {v_.values().data(), kv_heads * dim, dim};
  args.out = out_.data();
  args.req_to_token = {table_.data(), true};
  args.req_to_token_columns = columns_;
  args.req_pool_indices = pool_rows_.data();
  args.seq_lens = lengths_.data();
  args.threads = threads;
}

amx::KernelOutcome AmxWork::extend(int threads) {
  amx::ExtendArguments args;
  fill(args, threads);
  args.k_new = {k_new_.data(), kv_heads * dim, dim};
  args.v_new = {v_new_.data(), kv_heads * dim, dim};
  args.extend_seq_lens = fresh_.data();
  args.extend_start_loc = starts_.data();
  args.max_len = *std::max_element(fresh_.begin(), fresh_.end());
  return amx::extend(args);
}

amx::KernelOutcome AmxWork::decode(int threads) {
  amx::DecodeArguments args;
  fill(args, threads);
  args.splits = decode_splits;
  return amx::decode(args);
}

double AmxWork::extend_flops() const {
  double pairs = 0;
  for (const Row& row : rows_) pairs += visible_pairs(row);
  return 2.0 * pairs * static_cast<double>(q_heads * (dim + dim));
}

double AmxWork::kv_bytes() const {
  std::int64_t keys = 0;
  for (const std::int64_t length : lengths_) keys += length;
  return static_cast<double>(keys * kv_heads * (dim + dim)) * sizeof(amx::Bf16);
}

std::uint64_t AmxWork::read_pools(int threads, int streams) const {
  std::atomic<std::uint64_t> total{0};
  const auto work = [&](int part) {
    for (const PoolMemory* pool : {&k_, &v_}) {
      const auto bytes = std::as_bytes(pool->values());
      const std::size_t each = bytes.size() / static_cast<std::size_t>(threads) / 64 * 64;
      const std::size_t first = each * static_cast<std::size_t>(part);
      const std::size_t count = part + 1 == threads ? bytes.size() - first : each;
      total += sum_words(bytes.subspan(first, count), streams);
    }
  };
  std::vector<std::jthread> others;
  for (int t = 1; t < threads; ++t) others.emplace_back(work, t);
  work(0);
  others.clear();
  return total;
}

std::vector<AmxWork::Row> long_verify_batch() {
  return {{40'956, 4}, {4'096, 8},  {25'600, 5}, {15'360, 7},
          {35'840, 6}, {10'240, 4}, {30'720, 8}, {20'480, 5}};
}

std::vector<AmxWork::Row> typical_batch() {
  return std::vector<AmxWork::Row>(8, AmxWork::Row{1'020, 4});
}

double peak_gflops(int threads) {
  constexpr int rounds = 200'000;
  constexpr double flops_per_dot = 2.0 * 16 * 16 * 32;
  const double seconds = best_seconds(3, [&] {
    static_cast<void>(amx::on_tiles(threads, [&](int) {
      amx::tile_zero<0>();
      amx::tile_zero<1>();
      amx::tile_zero<2>();
      amx::tile_zero<3>();
      amx::tile_zero<4>();
      amx::tile_zero<5>();
      amx::tile_zero<6>();
      amx::tile_zero<7>();
      for (int i = 0; i < rounds; ++i) {
        amx::tile_dot_bf16<0, 4, 6>();
        amx::tile_dot_bf16<1, 4, 7>();
        amx::tile_dot_bf16<2, 5, 6>();
        amx::tile_dot_bf16<3, 5, 7>();
      }
    }));
  });
  return 4.0 * rounds * flops_per_dot * threads / seconds / 1e9;
}

}  // namespace attest
