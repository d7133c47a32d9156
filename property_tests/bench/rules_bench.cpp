#include <stdexcept>

#include "contracts/rules.hpp"
#include "contracts/signatures.hpp"
#include "fixtures/captured_check.hpp"
#include "property_tests/bench/bench.hpp"
#include "property_tests/bench/captured_text.hpp"

#include "property_tests/generators.hpp"

namespace attest {
namespace {

/// `batch` requests of a verify step (one token each where the kernel takes no more), page 64, from
/// 1k keys on, 12 more each.
Problem batch_of(std::int64_t batch, Signature signature) {
  Problem problem;
  problem.model.num_q_heads = 32;
  problem.model.num_kv_heads = signature == Signature::mla_decode ? 1 : 8;
  problem.model.head_dim = 128;
  problem.model.v_head_dim = 128;
  if (signature == Signature::mla_decode) {
    problem.model.mla = true;
    problem.model.num_q_heads = 128;
    problem.model.head_dim = 576;
    problem.model.v_head_dim = 512;
  }
  const bool single = signature == Signature::decode || signature == Signature::paged_ragged;
  problem.mode = single ? Mode::decode : Mode::target_verify;
  problem.pool.page_size = signature == Signature::mla_decode ? 1 : 64;
  std::int64_t slots = 0;
  for (std::int64_t i = 0; i < batch; ++i) {
    problem.requests.push_back(
        {.sequence = i, .committed = 1024 + 12 * i, .new_tokens = single ? 1 : 4});
    slots += (problem.requests.back().kv_len() + 63) / 64 * 64;
  }
  problem.pool.num_pages = slots / problem.pool.page_size + 1;
  problem.context_len = 4096 + 64;
  if (!single) problem.num_draft_tokens = 4;
  return problem;
}

/// Seconds of one check(). \throws std::runtime_error where the call is not accepted
double check_seconds(const Problem& problem, Signature signature, int runs) {
  const SlotMap slots = make_slot_map(problem);
  const Lowered<Call> lowered = lower(signature, problem, slots);
  if (const auto* no = std::get_if<Unsupported>(&lowered)) {
    throw std::runtime_error("bench: " + no->reason);
  }
  Capabilities capabilities;
  capabilities.signature = signature;
  const Truth truth{problem, slots, capabilities};
  const Call& call = std::get<Call>(lowered);
  if (check(call, truth).rejects()) throw std::runtime_error("bench: the batch is rejected");
  return best_seconds(runs, [&] { static_cast<void>(check(call, truth)); });
}

Measurement check_time(Signature signature) {
  const Problem problem = batch_of(256, signature);
  return {.id = "rules.check_" + std::string(name(signature)),
          .says = "check() of 256 requests of 1k to 4k keys, page " +
                  std::to_string(problem.pool.page_size),
          .value = check_seconds(problem, signature, 50) * 1e3,
          .unit = "ms",
          .target = 1.0,
          .target_is_floor = false};
}

Measurement check_rate(Signature signature) {
  const Problem problem = batch_of(8, signature);
  return {.id = "rules.rate_" + std::string(name(signature)),
          .says = "check() of 8 requests of 1k keys, page " +
                  std::to_string(problem.pool.page_size) + ", one thread",
          .value = 1 / check_seconds(problem, signature, 500),
          .unit = "calls/s",
          .target = 10'000};
}

/// What `attest check` does with a line: parsing, then everything from the truth to the verdict.
void add_captured(std::vector<Measurement>& all) {
  const Problem problem = batch_of(8, Signature::unified);
  const SlotMap slots = make_slot_map(problem);
  const auto lowered = lower_unified(problem, slots);
  const std::string line = captured_text(std::get<UnifiedCall>(lowered), problem, slots);
  const CapturedCall captured = parse_captured(line, "bench.jsonl", 1);
  if (check_captured(captured).verdict != Verdict::pass) {
    throw std::runtime_error("bench: the captured call is not accepted");
  }
  const double parse =
      best_seconds(200, [&] { static_cast<void>(parse_captured(line, "bench.jsonl", 1)); });
  const double judge = best_seconds(200, [&] { static_cast<void>(check_captured(captured)); });
  const auto bytes = static_cast<double>(line.size());
  all.push_back({.id = "rules.parse",
                 .says = "a captured unified_attention call of 8 requests, " +
                         std::to_string(line.size()) + " bytes, from text to call and truth",
                 .value = bytes / parse / 1e6,
                 .unit = "MB/s"});
  all.push_back({.id = "rules.parse_over_judging",
                 .says = "parsing that line over judging it (slot map and rules)",
                 .value = parse / judge,
                 .unit = "x"});
}

}  // namespace

std::vector<Measurement> measure_rules() {
  std::vector<Measurement> all;
  all.reserve(2 * generated_signatures.size() + 2);
  for (const Signature signature : generated_signatures) all.push_back(check_time(signature));
  for (const Signature signature : generated_signatures) all.push_back(check_rate(signature));
  add_captured(all);
  return all;
}

}  // namespace attest
