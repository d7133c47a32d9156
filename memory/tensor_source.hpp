#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "contracts/problem.hpp"
#include "contracts/slot_map.hpp"
#include "memory/plant_index.hpp"
#include "memory/poison.hpp"
#include "memory/recipe_plan.hpp"

namespace attest {

struct RowOut;

/// The tensors of one case as a pure function of (problem, recipe, seed): any element computable
/// alone, with integers only (counter hash -> index -> fixed table of bit patterns), so host,
/// device and other languages agree to the bit. Immutable after construction; safe to share between
/// threads.
///
/// Contents follow tokens, not places: q of a token depends on its (sequence, position, head), K
/// and V on theirs, so batches may be permuted, split and moved to other pages.
///
/// Rows are written densely in the tensor's dtype. q rows are those of the Problem (request order,
/// total_new_tokens of them); rows past that are padding and hold ordinary finite values. A
/// destination of another length than the row throws std::invalid_argument.
class TensorSource {
 public:
  /// \pre !problem_error(problem)
  TensorSource(Problem problem, Recipe recipe, std::uint64_t seed, PoisonPlan poison = {});

  const Problem& problem() const { return problem_; }
  const SlotMap& slots() const { return slots_; }
  Recipe recipe() const { return recipe_; }
  std::uint64_t seed() const { return seed_; }
  const PoisonPlan& poison() const { return poison_; }
  std::span<const Plant> plants() const { return plan_.plants; }

  /// The content of new token row `row` (as q counts them), or nothing for a padding row.
  std::optional<ContentKey> token_of_row(std::int64_t row) const;

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
  void write_q(std::int64_t row, std::int64_t head, const RowOut& out) const;
  void write_k(const ContentKey& key, std::int64_t kv_head, const RowOut& out) const;
  void write_v(const ContentKey& key, std::int64_t kv_head, const RowOut& out) const;
  void write_planted_k(const Plant& plant, const RowOut& out) const;

  Problem problem_;
  SlotMap slots_;
  Recipe recipe_;
  std::uint64_t seed_;
  PoisonPlan poison_;
  RecipePlan plan_;
  PlantIndex plant_at_;
  std::vector<std::int64_t> first_row_;  ///< of each request, and the total behind them
};

}  // namespace attest
