#include "property_tests/generators.hpp"

#include <algorithm>

#include "property_tests/generator_parts.hpp"
#include "property_tests/power.hpp"

namespace attest {
namespace {

/// How a person gets the case again; options that differ from their defaults are part of it.
std::string origin_of(std::uint64_t seed, std::uint64_t index, const GeneratorOptions& options) {
  const GeneratorOptions defaults;
  std::string text = "--seed " + std::to_string(seed) + " --case " + std::to_string(index);
  if (options.max_kv != defaults.max_kv) text += " --max-kv " + std::to_string(options.max_kv);
  if (options.max_requests != defaults.max_requests) {
    text += " --max-requests " + std::to_string(options.max_requests);
  }
  if (options.recipe) text += " --recipe " + std::string(name(*options.recipe));
  return text;
}

}  // namespace

Case generate(std::uint64_t seed, std::uint64_t index, const GeneratorOptions& options) {
  // The signature is part of the stream: the same index means unrelated cases of two signatures.
  Draw draw(seed + static_cast<std::uint64_t>(options.signature) * 0x632be59bd9b4e019, index);
  Case c;
  c.signature = options.signature;
  const BatchPlan plan = draw_plan(draw, options);
  c.problem.model = draw_model(draw, options, plan);
  c.problem.pool.page_size = draw_page_size(draw, options);
  draw_requests(draw, options, plan, c.problem);
  draw_pool(draw, options, c.problem);
  c.recipe =
      draw.pick({Recipe::normal, Recipe::normal, Recipe::recall, Recipe::needle, Recipe::features});
  c.seed = draw.bits() >> 1;  // fits JSON's signed integers
  // Logits far from 0 in one case of twenty: a running maximum that starts at 0 needs them.
  if (c.recipe == Recipe::normal && draw.chance(12)) c.recipe = Recipe::shifted;
  if (options.recipe) {
    c.recipe = *options.recipe;
  } else {
    give_power(c);
  }
  c.origin = origin_of(seed, index, options);
  return c;
}

}  // namespace attest
