#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "contracts/attended.hpp"
#include "contracts/capabilities.hpp"
#include "property_tests/case.hpp"

namespace attest {

/// A context as long as the real ones, judged on a few rows: the reference costs one pass over the
/// keys for each.
struct LongContext {
  std::int64_t keys = 0;
  std::int64_t new_tokens = 1;
  Signature signature = Signature::unified;
  std::string name() const;  ///< "131072 keys, 4 new tokens"
};

/// 128k, 512k and 1M keys: a verify step, and a chunk of 64 tokens at 128k. All of `recall` data,
/// the only one in which a single key among so many can be missed.
std::vector<LongContext> long_contexts(const Capabilities& capabilities);

/// Its seed is the first from `index` on whose judged rows look for a newest key.
Case case_of(const LongContext& context, std::uint64_t index);

/// Which rows of `rows` a sampled comparison looks at: the first and the last one, both sides of
/// every multiple of 16, 32 and 64 as far as `most` allows, the rest drawn by `seed`. Ascending.
std::vector<std::int64_t> sampled_rows(std::int64_t rows, std::int64_t most, std::uint64_t seed);

/// Leaves a value to compare to the sampled rows of `c` only. \returns them; none when all are
/// compared.
std::vector<std::int64_t> sample_rows(const Case& c, Attended& meaning);

}  // namespace attest
