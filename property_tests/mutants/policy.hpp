#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "contracts/output.hpp"
#include "memory/recipe_plan.hpp"
#include "reference/attention.hpp"

namespace attest {

/// What a suite compares: the rows that have a value, one after the other.
struct PolicyView {
  std::span<const double> got;
  std::span<const double> expected;  ///< in double
  std::span<const double> naive;     ///< a plain implementation in the kernel's own precision
  std::span<const double> abs_v;     ///< sum p |v|
  double unit_roundoff = 0;          ///< of the output's dtype
};

/// How a well-known suite decides whether an attention kernel is right: its data and its
/// comparison.
struct Policy {
  std::string_view name;    ///< "aiter-unified"
  std::string_view suite;   ///< whose
  std::string_view source;  ///< repository, file and symbol
  std::string_view data;    ///< in words
  std::string_view rule;    ///< in words
  Recipe recipe = Recipe::normal;
  std::optional<Dtype> dtype;  ///< that its numbers are meant for; absent: bf16, as it comes
  bool needs_naive = false;
  /// An empty string, or what it holds against the output.
  std::string (*refuses)(const PolicyView&);
};

std::span<const Policy> all_policies();
/// nullptr when there is none of that name.
const Policy* find_policy(std::string_view name);

/// A plain attention of rows that have a value, every step rounded to q's dtype as a framework's
/// own operators do it: q * scale, scores, P after the softmax, out. (rows, heads, v_head_dim) in
/// the order of PolicyView. Cost: the reference's, without its matrix products.
std::vector<double> low_precision_attention(const Attended& meaning, const TensorSource& source,
                                            const std::vector<std::int64_t>& rows);

}  // namespace attest
