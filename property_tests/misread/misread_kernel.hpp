#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "property_tests/diagnose.hpp"
#include "property_tests/misread/key_rows.hpp"
#include "property_tests/misread/misreading.hpp"
#include "reference/attention.hpp"

namespace attest {

/// What one row and head is made of.
struct Reading {
  bool written = true;
  Place query;
  struct Key {
    std::size_t k = 0, v = 0;  ///< of KeyRows
    bool operator==(const Key&) const = default;
  };
  std::vector<Key> keys;
  bool has_nan = false;
  bool operator==(const Reading&) const = default;

  /// Without a key, or with keys all of whose values are zero.
  bool is_zero() const;
};

/// What a kernel computes that makes a mistake. As double sums over what it reads, by the same core
/// that the reference has.
class MisreadKernel {
 public:
  explicit MisreadKernel(const KernelView& view, bool round_scaled_q = false);

  /// Nothing where the mistake reads outside of an array, which nobody can say the result of.
  std::optional<Reading> read(const Misreading& mistake, Place place);

  /// Some elements of what is written for a reading, and their sums of w |v|.
  struct Probe {
    std::vector<std::int64_t> elements;
    std::vector<double> out, abs_v;
  };
  void probe(const Misreading& mistake, const Reading& reading, Place place, Probe& probe);

  /// Everything that is computed for the rows. Places that are nothing to compare are as `truth`
  /// has them.
  struct Result {
    Expected expected;
    std::vector<Place> nan, unwritten, zero;  ///< not computed
  };
  std::optional<Result> compute(const Misreading& mistake, const std::vector<std::int64_t>& rows);

  const KernelView& view() const { return view_; }

 private:
  std::optional<std::size_t> key_row(const Misreading& mistake, const Seen& seen, PoolHalf half,
                                     std::int64_t position);
  std::vector<double> scaled_q(const Misreading& mistake, Place query) const;
  Seen seen_at(Place place) const;

  const KernelView& view_;
  bool round_scaled_q_;
  KeyRows rows_;
};

}  // namespace attest
