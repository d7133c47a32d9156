#include <algorithm>
#include <cmath>

#include "memory/amplitude.hpp"
#include "memory/counter_hash.hpp"
#include "memory/planner.hpp"

namespace attest {
namespace {

/// q is scaled by 16 in the presence of a softcap, so logits of unit variance reach it.
constexpr int softcap_exponent = 4;

/// The log-sum-exp a row of ordinary data is expected to have.
double expected_lse(const Model& model, double log_keys, int q_exponent) {
  const double unit = logit_per_element(model);
  const double q_amplitude = q_exponent == softcap_exponent ? 16 : 1;
  const double variance =
      unit * unit * q_amplitude * q_amplitude * static_cast<double>(model.head_dim);
  // exp(N(0, s2)) summed over n keys: n exp(s2 / 2) while the typical key dominates, the largest
  // one when single keys do. Mean of the largest of n normals: Cramer, "Mathematical Methods of
  // Statistics", 28.6.
  const double edge = std::sqrt(2 * log_keys);
  const double largest = log_keys < 1 ? 0 : edge - (natural_log(log_keys) + 2.5310242) / (2 * edge);
  const double edge_logit = std::sqrt(variance) * largest;
  if (model.softcap > 0) return model.softcap * rough_tanh(edge_logit / model.softcap);
  return variance < 2 * log_keys ? log_keys + variance / 2 : edge_logit;
}

/// The K amplitude with which a key along the signs of a q row gets `logit`. The mean of |N(0, 1)|
/// is sqrt(2 / pi).
double edge_amplitude(const Model& model, double logit, int q_exponent) {
  const double q_amplitude = q_exponent == softcap_exponent ? 16 : 1;
  return logit / (logit_per_element(model) * q_amplitude * 0.79788456 *
                  static_cast<double>(model.head_dim));
}

/// For every row and kv head: a key on the window's edge (the last one inside) that dominates one q
/// head, and one just outside that would dominate another.
void plant_window_edges(Planner& planner) {
  for (const PlannedRow& row : planner.rows()) {
    if (row.first == 0) continue;
    for (std::int64_t kv_head = 0; kv_head < planner.model().num_kv_heads; ++kv_head) {
      const std::int64_t member = below(chain(row.hash, kv_head), planner.group());
      const std::int64_t other = (member + 1) % planner.group();
      const auto place = [&](std::int64_t index, std::int64_t in_group, bool decoy) {
        if (!planner.in_pool(row.request, index)) return;
        planner.plant({planner.key_at(row.request, index), kv_head, row.row,
                       kv_head * planner.group() + in_group, decoy});
      };
      // Neighbouring rows compete for the same keys: two are inside, the next two just outside.
      const auto turn = static_cast<std::uint64_t>(row.first / 2 + kv_head) + planner.seed();
      if (turn % 2 == 0) {
        place(row.first, member, false);
      } else {
        place(row.first - 1, other, true);
      }
    }
  }
}

}  // namespace

RecipePlan plan_features(const Problem& problem, const SlotMap& slots, std::uint64_t seed) {
  Planner planner(problem, slots, seed);
  RecipePlan plan;
  const Model& model = problem.model;
  plan.q_exponent = model.softcap > 0 ? softcap_exponent : 0;
  const double log_keys = planner.mean_log_visible();
  plan.sink_centre = expected_lse(model, log_keys, plan.q_exponent);
  const double edge_logit = model.softcap > 0 ? 2 * model.softcap : log_keys + 1;
  const double amplitude = edge_amplitude(model, edge_logit, plan.q_exponent);
  plan.key_amplitude = representable(model.kv_dtype, amplitude) * sign_of_scale(model);
  plan.decoy_amplitude = plan.key_amplitude;
  if (model.window) plant_window_edges(planner);
  plan.plants = planner.take_plants();
  return plan;
}

}  // namespace attest
