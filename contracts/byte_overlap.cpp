#include "contracts/byte_overlap.hpp"

#include <algorithm>

#include "contracts/capped_product.hpp"
#include "contracts/storage_label.hpp"

namespace attest {
namespace {

/// Above every storage; sums of a few dozen stay inside 63 bits.
constexpr std::int64_t far_away = std::int64_t{1} << 56;

std::int64_t times(std::int64_t a, std::int64_t b) { return capped_product(a, b, far_away); }

std::int64_t floor_div(std::int64_t a, std::int64_t b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

std::int64_t element_bytes(const TensorMeta& t) {
  return static_cast<std::int64_t>(size_bytes(t.dtype));
}

bool is_empty(const TensorMeta& t) { return std::ranges::count(t.shape, 0) > 0; }

bool has_dense_rows(const TensorMeta& t) { return !t.shape.empty() && t.strides.back() == 1; }

/// Bytes of the runs that a tensor consists of: its last dimension where that is dense.
std::int64_t run_bytes(const TensorMeta& t) {
  return times(has_dense_rows(t) ? t.shape.back() : 1, element_bytes(t));
}

/// Runs may lie `stride` bytes times low .. high apart.
struct Step {
  std::int64_t stride, low, high;
};

/// Looks for coefficients of the steps that bring two runs within reach of one another.
class Search {
 public:
  Search(std::int64_t width_a, std::int64_t width_b) : width_a_(width_a), width_b_(width_b) {}

  /// Distances between two runs of one tensor. Dimensions stay apart, so that (1, -1) over equal
  /// strides is seen to be a step to somewhere else.
  void add_within(const TensorMeta& t) {
    each_run_dimension(t, [this](std::int64_t stride, std::int64_t reach) {
      steps_.push_back({stride, -reach, reach});
    });
  }
  /// Distances from a run of `a` to one of `b`; equal strides count together.
  void add_between(const TensorMeta& a, const TensorMeta& b) {
    each_run_dimension(
        a, [this](std::int64_t stride, std::int64_t reach) { merge({stride, -reach, 0}); });
    each_run_dimension(
        b, [this](std::int64_t stride, std::int64_t reach) { merge({stride, 0, reach}); });
  }

  /// `moved`: whether coefficients that are all zero count, too.
  bool found(std::int64_t distance, bool moved) {
    std::ranges::sort(steps_, std::greater<>(), &Step::stride);
    lowest_.assign(steps_.size() + 1, 0);
    highest_.assign(steps_.size() + 1, 0);
    for (std::size_t i = steps_.size(); i-- > 0;) {
      lowest_[i] = lowest_[i + 1] + times(steps_[i].low, steps_[i].stride);
      highest_[i] = highest_[i + 1] + times(steps_[i].high, steps_[i].stride);
    }
    return walk(0, distance, moved);
  }

 private:
  template <class F>
  static void each_run_dimension(const TensorMeta& t, F f) {
    const std::size_t dims = t.shape.size() - (has_dense_rows(t) ? 1 : 0);
    for (std::size_t d = 0; d < dims; ++d) {
      if (t.shape[d] > 1) f(times(t.strides[d], element_bytes(t)), t.shape[d] - 1);
    }
  }

  void merge(const Step& step) {
    const auto same = std::ranges::find(steps_, step.stride, &Step::stride);
    if (same == steps_.end()) {
      steps_.push_back(step);
    } else {
      same->low += step.low;
      same->high += step.high;
    }
  }

  bool walk(std::size_t at, std::int64_t distance, bool moved) {
    if (--left_ < 0) return false;
    if (distance + lowest_[at] >= width_a_ || distance + highest_[at] <= -width_b_) return false;
    if (at == steps_.size()) return moved;
    const Step& step = steps_[at];
    if (step.stride == 0) return walk(at + 1, distance, true);
    const std::int64_t first = floor_div(-width_b_ - highest_[at + 1] - distance, step.stride) + 1;
    const std::int64_t last = floor_div(width_a_ - 1 - lowest_[at + 1] - distance, step.stride);
    for (std::int64_t d = std::max(first, step.low); d <= std::min(last, step.high); ++d) {
      if (walk(at + 1, distance + d * step.stride, moved || d != 0)) return true;
      if (left_ < 0) return false;
    }
    return false;
  }

  std::int64_t width_a_, width_b_;
  std::vector<Step> steps_;                     ///< after found() began: by falling stride
  std::vector<std::int64_t> lowest_, highest_;  ///< what the steps from i on can add
  int left_ = 4096;
};

}  // namespace

std::int64_t spanned_elements(const TensorMeta& tensor) {
  if (is_empty(tensor)) return 0;
  std::int64_t span = 1;
  for (std::size_t d = 0; d < tensor.shape.size(); ++d) {
    span += times(tensor.shape[d] - 1, tensor.stride(d));
  }
  return std::min(span, far_away);
}

bool overlaps_itself(const TensorMeta& tensor) {
  if (is_empty(tensor)) return false;
  Search search(run_bytes(tensor), run_bytes(tensor));
  search.add_within(tensor);
  return search.found(0, /*moved=*/false);
}

bool have_common_bytes(const TensorMeta& a, const TensorMeta& b) {
  if (is_empty(a) || is_empty(b)) return false;
  Search search(run_bytes(a), run_bytes(b));
  search.add_between(a, b);
  const std::int64_t distance =
      times(b.storage_offset, element_bytes(b)) - times(a.storage_offset, element_bytes(a));
  return search.found(distance, /*moved=*/true);
}

bool share_bytes(const TensorMeta& a, const TensorMeta& b) {
  return same_storage(a.storage, b.storage) && have_common_bytes(a, b);
}

}  // namespace attest
