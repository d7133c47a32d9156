#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "contracts/attended.hpp"
#include "contracts/call.hpp"
#include "contracts/numerics_profile.hpp"
#include "contracts/output.hpp"
#include "memory/stray_read.hpp"
#include "memory/tensor_source.hpp"
#include "reference/attention.hpp"
#include "reference/compare.hpp"

namespace attest {

/// What a mistake multiplies the outputs of one row and q head with. `expected` is the truth's, or
/// the changed meaning's.
using OutputFactor = double (*)(const Expected& expected, const TensorSource& source,
                                std::int64_t row, std::int64_t head);

/// A known mistake as a changed meaning. `apply` edits the truth; false where it changes nothing.
struct Hypothesis {
  std::string_view id;    ///< "prefix_hole"
  std::string_view says;  ///< a sentence
  std::string_view look;  ///< the index, loop or mask of a kernel that usually does this
  bool (*apply)(const Problem&, Attended&);
  std::int64_t k_head_shift = 0;  ///< ReferenceOptions
  std::int64_t v_head_shift = 0;
  OutputFactor factor = nullptr;      ///< on the output, for what no change of keys says
  bool factor_is_of_the_sum = false;  ///< it comes from another softmax sum, so lse moves too
};

/// Every hypothesis, the more specific before the more general: the first that fits best wins.
std::vector<Hypothesis> all_hypotheses();
/// Its last parts: another request or head; a number of keys, a part of them, a factor; rows that
/// share a mask, keys that are looked up elsewhere; a split.
std::vector<Hypothesis> request_hypotheses();
std::vector<Hypothesis> parametric_hypotheses();
std::vector<Hypothesis> lookup_hypotheses();
std::vector<Hypothesis> split_hypotheses();

/// Multiplies the outputs that were computed, and what their bounds are made of.
void apply_factor(const Hypothesis& hypothesis, const TensorSource& source, Expected& expected);

/// An output that an oracle refused.
struct Failure {
  const Call& call;
  const TensorSource& source;
  const Attended& meaning;  ///< the truth
  const Output& got;
  const NumericsProfile& profile;
  const std::vector<OracleResult>& oracles;  ///< all of them
  std::vector<StrayRead> stray_reads = {};   ///< of poison, where the pool noticed
};

/// Shows further outputs of the same kernel, right ones too, until `see` returns false.
using FurtherOutputs = std::function<void(const std::function<bool(const Failure&)>& see)>;

/// As many of the mistakes that compute the same as a person reads.
inline constexpr std::size_t few_names = 3;

/// One sentence: which known mistake computes this output within the hard bound and which one comes
/// next, else "unexplained: ..." with how many were tried. Mistakes are the hypotheses above and
/// the misreadings (misread/misreading.hpp). What the call itself says, where it differs from the
/// truth, is tried first. Cost: a row of the reference per hypothesis, a few places of it per
/// misreading, a dozen rows for those that are left.
std::string diagnose(const Failure& failure);
/// The same of a mistake that shows in two outputs. What the second one says comes first: it is
/// that of second_look.hpp, over data that tell more mistakes apart.
/// Of mistakes that fit, further outputs say which (settle_ties.hpp); none where that is empty.
/// \param most_same  of those that compute the same, how many are named; the rest is counted
std::string diagnose(const Failure& failure, const Failure& again, const FurtherOutputs& further,
                     std::size_t most_same = few_names);

/// What such a sentence names: ids of hypotheses, or one of "metadata", "unwritten_row",
/// "wrapped_offset", "zeros_past_2_gib", "stray_read".
struct DiagnosisNames {
  /// The best one, then those that compute the same on the rows of the failure. Empty: nothing.
  std::vector<std::string> first;
  std::string second;  ///< the next one; may be empty
};
DiagnosisNames names_in_diagnosis(std::string_view sentence);

}  // namespace attest
