#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "contracts/problem.hpp"
#include "contracts/slot_map.hpp"

namespace attest {

/// Distributions of q, k, v and sinks. docs/numerics.md, "Data" says what each one shows.
enum class Recipe { normal, recall, needle, features };
std::string_view name(Recipe recipe);
std::optional<Recipe> recipe_from_name(std::string_view text);

/// What the bytes hold that a kernel must not read.
enum class Poison {
  nan,   ///< NaN; its payload names the region where the dtype has payload bits
  loud,  ///< large finite values (1e30-like), for kernels that swallow NaN by masking
};
std::string_view name(Poison poison);
std::optional<Poison> poison_from_name(std::string_view text);

/// Which unread regions hold which poison. V past kv_len inside a request's last page is finite by
/// default: 0 * NaN reaches the output of kernels whose tile equals a page (docs/numerics.md).
struct PoisonPlan {
  Poison poison = Poison::nan;
  bool nan_in_v_tail = false;
  bool operator==(const PoisonPlan&) const = default;
};

/// A position where a recipe plants a distinctive key.
struct Plant {
  ContentKey key;
  std::int64_t kv_head = 0;
  std::int64_t row = 0;  ///< q row it answers to
  std::int64_t q_head = 0;
  bool decoy = false;  ///< a key the row must not see
};

/// The tensors of one case as a pure function of (problem, recipe, seed): any element computable
/// alone, with integers only (counter hash -> index -> fixed table of bit patterns), so host,
/// device and other languages agree to the bit. Immutable after construction; safe to share between
/// threads.
///
/// Rows are written densely in the tensor's dtype. q rows are those of the Problem (request order,
/// total_new_tokens of them); rows past that are padding and hold ordinary finite values.
class TensorSource {
 public:
  /// \pre !problem_error(problem)
  TensorSource(Problem problem, Recipe recipe, std::uint64_t seed, PoisonPlan poison = {});

  const Problem& problem() const { return problem_; }
  const SlotMap& slots() const { return slots_; }
  Recipe recipe() const { return recipe_; }
  std::uint64_t seed() const { return seed_; }
  const PoisonPlan& poison() const { return poison_; }
  std::span<const Plant> plants() const { return plants_; }

  /// q of one row and head: head_dim elements of q_dtype.
  void q_row(std::int64_t row, std::int64_t head, std::span<std::byte> out) const;
  /// K of one content key: head_dim elements of kv_dtype.
  void k_row(ContentKey key, std::int64_t kv_head, std::span<std::byte> out) const;
  /// V of one content key: v_head_dim elements of kv_dtype. MLA: the head of its k_row.
  void v_row(ContentKey key, std::int64_t kv_head, std::span<std::byte> out) const;
  /// The same, decoded (descales not applied). `out` has as many elements as the row.
  void q_row(std::int64_t row, std::int64_t head, std::span<double> out) const;
  void k_row(ContentKey key, std::int64_t kv_head, std::span<double> out) const;
  void v_row(ContentKey key, std::int64_t kv_head, std::span<double> out) const;
  /// Sink logit of one head, a value of q_dtype. 0 when the model has none.
  float sink(std::int64_t head) const;

 private:
  Problem problem_;
  SlotMap slots_;
  Recipe recipe_;
  std::uint64_t seed_;
  PoisonPlan poison_;
  std::vector<Plant> plants_;  ///< sorted by (key, kv_head)
};

}  // namespace attest
