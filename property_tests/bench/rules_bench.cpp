#include <stdexcept>

#include "contracts/rules.hpp"
#include "contracts/signatures.hpp"
#include "property_tests/bench/bench.hpp"

#include "property_tests/generators.hpp"

namespace attest {
namespace {

/// 256 requests of a verify step (decode: one token each), page 64, 1k to 4k keys.
Problem batch_of_256(Signature signature) {
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
  for (std::int64_t i = 0; i < 256; ++i) {
    problem.requests.push_back(
        {.sequence = i, .committed = 1024 + 12 * i, .new_tokens = single ? 1 : 4});
    slots += (problem.requests.back().kv_len() + 63) / 64 * 64;
  }
  problem.pool.num_pages = slots / problem.pool.page_size + 1;
  problem.context_len = 4096 + 64;
  if (!single) problem.num_draft_tokens = 4;
  return problem;
}

Measurement check_time(Signature signature) {
  const Problem problem = batch_of_256(signature);
  const SlotMap slots = make_slot_map(problem);
  const Lowered<Call> lowered = lower(signature, problem, slots);
  if (const auto* no = std::get_if<Unsupported>(&lowered)) {
    throw std::runtime_error("bench: " + no->reason);
  }
  Capabilities capabilities;
  capabilities.signature = signature;
  const Truth truth{problem, slots, capabilities};
  const Call& call = std::get<Call>(lowered);
  if (check(call, truth).rejects()) throw std::runtime_error("bench: the batch of 256 is rejected");
  const double seconds = best_seconds(50, [&] { static_cast<void>(check(call, truth)); });
  return {.id = "rules.check_" + std::string(name(signature)),
          .says = "check() of 256 requests of 1k to 4k keys, page " +
                  std::to_string(problem.pool.page_size),
          .value = seconds * 1e3,
          .unit = "ms",
          .target = 1.0,
          .target_is_floor = false};
}

}  // namespace

std::vector<Measurement> measure_rules() {
  std::vector<Measurement> all;
  all.reserve(generated_signatures.size());
  for (const Signature signature : generated_signatures) all.push_back(check_time(signature));
  return all;
}

}  // namespace attest
