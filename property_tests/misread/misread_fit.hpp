#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "property_tests/hypothesis_fit.hpp"
#include "property_tests/misread/misread_kernel.hpp"
#include "reference/error_bound.hpp"

namespace attest {

/// Looks for the misreadings that compute an output: first at a few places and elements, then
/// whole rows of those that are left.
class MisreadSearch {
 public:
  /// \param failure must outlive this.
  /// \param rows    at which the output is held against the truth for places to look at.
  MisreadSearch(const Failure& failure, const std::vector<std::int64_t>& rows);
  /// The view that is handed out refers to this object.
  MisreadSearch(const MisreadSearch&) = delete;
  MisreadSearch& operator=(const MisreadSearch&) = delete;

  /// Those that compute what is at the places that were looked at; in order of the list.
  std::vector<const Misreading*> candidates(const std::vector<Misreading>& all);
  /// Whether the output is not what the mistake computes, at one of these places.
  bool contradicts(const Misreading& mistake);
  /// Nothing when an oracle refuses a row.
  std::optional<Fit> fit(const Misreading& mistake, const std::vector<std::int64_t>& rows);

 private:
  struct Spot {
    Place place;
    double measure = 0;  ///< largest error over its bound; infinite for NaN and what nobody wrote
  };
  bool is_usable(const Expected& truth);
  void choose_spots(const Expected& truth, const std::vector<std::int64_t>& rows);
  void take(const std::vector<Spot>& from, std::size_t most);
  /// Largest error over the bound at the spots; nothing where one disagrees.
  std::optional<double> at_spots(const Misreading& mistake);
  std::optional<double> at_spot(const Misreading& mistake, std::size_t spot, bool& tells);
  bool has_nan(Place place) const;
  bool is_untouched(Place place) const;
  bool is_zero(Place place) const;

  const Failure& failure_;
  std::unique_ptr<const KernelView> view_;  ///< null: the call has none
  std::unique_ptr<MisreadKernel> kernel_;
  bool any_wrong_ = false;  ///< of the spots
  std::vector<Spot> spots_;
  std::vector<RowBound> bounds_;  ///< of the spots
  std::vector<Reading> right_;    ///< what they should be made of
  std::vector<std::int64_t> elements_;
  std::size_t candidates_ = 0;  ///< as many are affordable
};

}  // namespace attest
