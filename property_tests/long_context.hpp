#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "contracts/capabilities.hpp"
#include "property_tests/case.hpp"

namespace attest {

/// A context as long as the real ones, judged on a few rows: the reference costs one pass over the
/// keys for each.
struct LongContext {
  std::int64_t keys = 0;
  std::int64_t new_tokens = 1;
  Recipe recipe = Recipe::normal;
  Signature signature = Signature::unified;
  std::string name() const;  ///< "131072 keys, 4 new tokens, recall"
};

/// 128k, 512k and 1M keys: a verify step, and a chunk of 64 tokens at 128k.
std::vector<LongContext> long_contexts(const Capabilities& capabilities);

Case case_of(const LongContext& context, std::uint64_t index);

/// Which rows of `rows` a sampled comparison looks at: the first and the last one, both sides of
/// every multiple of 16, 32 and 64 as far as `most` allows, the rest drawn by `seed`. Ascending.
std::vector<std::int64_t> sampled_rows(std::int64_t rows, std::int64_t most, std::uint64_t seed);

}  // namespace attest
