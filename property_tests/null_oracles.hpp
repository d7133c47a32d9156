#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "contracts/attended.hpp"
#include "contracts/numerics_profile.hpp"
#include "memory/tensor_source.hpp"
#include "reference/attention.hpp"

namespace attest {

/// A case whose kernel agreed, as the null oracles see it.
struct Agreed {
  const Attended& meaning;   ///< attended(source.problem())
  const Expected& expected;  ///< of the meaning, with envelopes
  const NumericsProfile& profile;
  const TensorSource& source;
  bool round_scaled_q = false;
};

/// An answer nobody should accept. docs/numerics.md, "Power".
struct NullOracle {
  std::string_view id;    ///< "last_key_ignored"
  std::string_view says;  ///< "a kernel that ignores each row's newest key"
};
std::span<const NullOracle> all_null_oracles();

/// Why the case could not have failed: no row has a value to compare, or a null answer passes every
/// oracle on every row it applies to. Nothing when each null answer fails somewhere.
///
/// A null answer applies to a row where it means something else than the truth: a single key has no
/// newest key to ignore, one page has no second one. The identity block table is the exception: a
/// table that *is* the identity proves nothing about a kernel that never reads it.
/// Cost: usually one row of the reference per null answer.
std::optional<std::string> why_untrusted(const Agreed& agreed);

/// True where page c of every live request is page c of the pool.
bool has_identity_table(const Problem& problem, const SlotMap& slots);

}  // namespace attest
