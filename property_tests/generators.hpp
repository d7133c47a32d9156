#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "backends/backend.hpp"
#include "property_tests/case.hpp"

namespace attest {

/// The signatures that some backend runs, so that cases of them are worth drawing.
inline constexpr std::array generated_signatures = {
    Signature::unified,       Signature::extend,        Signature::decode,
    Signature::mla_decode,    Signature::batch_prefill, Signature::paged_ragged,
    Signature::legacy_extend, Signature::vllm_cpu};

/// What to draw.
struct GeneratorOptions {
  Signature signature = Signature::unified;
  const Capabilities* capabilities = nullptr;  ///< only what the backend claims; null = everything
  std::int64_t max_kv = 512;
  std::int64_t max_requests = 6;
  /// Data of every case, weak or not: a drawn recipe is changed until the case could fail.
  std::optional<Recipe> recipe = std::nullopt;
};

/// Case `index` of the stream `seed`: random access, so any shard count sees the same set. Legal by
/// construction (nothing is filtered): shapes of real models scaled down in length, uneven verify
/// lengths by default, permuted pages, recipe and mode mixed.
Case generate(std::uint64_t seed, std::uint64_t index, const GeneratorOptions& options);

/// Smaller legal cases, most promising first: fewer requests, shorter lengths, fewer heads, fewer
/// pages, fewer features. The only shrinker; RapidCheck and `attest run` both use it.
std::vector<Case> smaller(const Case& c);

/// Greedy descent over smaller() while `still_fails` holds, within `max_trials`.
struct Shrunk {
  Case best;
  int trials = 0;
  int steps = 0;
};
template <class StillFails>
Shrunk shrink(Case c, int max_trials, StillFails&& still_fails) {
  Shrunk result{std::move(c)};
  for (bool progress = true; progress;) {
    progress = false;
    for (Case& candidate : smaller(result.best)) {
      if (result.trials >= max_trials) return result;
      ++result.trials;
      if (!still_fails(candidate)) continue;
      result.best = std::move(candidate);
      ++result.steps;
      progress = true;
      break;
    }
  }
  return result;
}

/// Feature words of a case for the coverage table: "uneven", "window", "softcap", "sinks", "tree",
/// "mla", "gqa", "shared prefix", "page 1", the mode, the recipe.
std::vector<std::string> features_of(const Case& c);

}  // namespace attest
