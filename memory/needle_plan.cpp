#include <algorithm>
#include <vector>

#include "memory/amplitude.hpp"
#include "memory/counter_hash.hpp"
#include "memory/planner.hpp"

namespace attest {
namespace {

/// Share of a row's softmax that one needle gets, and that all of them may have together.
constexpr double needle_share = 0.1;
constexpr double all_needles_share = 0.8;
constexpr double smallest_logit = 2;
constexpr std::int64_t tile = 64;  // keys per step of the usual kernels

/// Indices of a request's key list where kernels go wrong. `last` is its last row.
std::vector<std::int64_t> needle_places(const Planner& planner, const PlannedRow& last) {
  const Request& request = planner.problem().requests[last.request];
  const std::int64_t committed = planner.model().cross_attention ? last.keys : request.committed;
  std::vector<std::int64_t> places = {0, committed - 1, committed - 2};
  // Long prefills have too many rows for a needle each: the ends stand for them.
  constexpr std::int64_t drafts = 16;
  for (std::int64_t t = 0; t <= last.token; ++t) {
    if (t < 2 || t > last.token - 2 || last.token < drafts)
      places.push_back(last.own - last.token + t);
  }
  // One border of each kind, another one for each seed.
  for (const std::int64_t step : {planner.problem().pool.page_size, tile}) {
    const std::int64_t low = last.first / step + 1;
    const std::int64_t borders = last.own / step - low + 1;
    if (borders < 1) continue;
    const auto salt = static_cast<std::uint64_t>(step);
    const std::int64_t border = (low + below(mix64(last.hash + salt), borders)) * step;
    places.insert(places.end(), {border - 1, border});
  }
  if (planner.model().window) {
    const std::int64_t first_row = std::max<std::int64_t>(0, last.token - drafts);
    for (std::int64_t t = first_row; t <= last.token; ++t) {
      const std::int64_t edge = last.first - (last.token - t);
      places.insert(places.end(), {edge - 1, edge, edge + 1});
    }
  }
  return places;
}

void plant_needles(Planner& planner, const PlannedRow& last) {
  for (const std::int64_t index : needle_places(planner, last)) {
    if (index < 0 || index >= last.keys || !planner.in_pool(last.request, index)) continue;
    const ContentKey key = planner.key_at(last.request, index);
    for (std::int64_t kv_head = 0; kv_head < planner.model().num_kv_heads; ++kv_head) {
      planner.plant({key, kv_head, -1, -1, false});
    }
  }
}

/// Every kv head has the same needles: those of head 0 stand for all.
std::vector<ContentKey> needle_keys(const std::vector<Plant>& plants) {
  std::vector<ContentKey> keys;
  for (const Plant& plant : plants) {
    if (plant.kv_head == 0) keys.push_back(plant.key);
  }
  return keys;
}

/// The amplitude that gives each of the row's needles its share. The background is n keys with
/// normal logits of variance s2, which weigh n * exp(s2 / 2) together; s2 depends on the amplitude
/// itself, so it is found by iteration.
double row_amplitude(const Model& model, const RecipePlan& plan, std::int64_t background,
                     std::int64_t needles) {
  const double unit = logit_per_element(model);
  const auto aligned = static_cast<double>(model.head_dim - plan.aligned_from);
  const auto ordinary = static_cast<double>(plan.aligned_from);
  const double ordinary_power = plan.q_exponent == -2 ? 1.0 / 16 : 1.0;
  const double count = static_cast<double>(std::max<std::int64_t>(needles, 1));
  const double share = std::min(needle_share, all_needles_share / count);
  const double base =
      background > 0 ? natural_log(static_cast<double>(background) * share / (1 - count * share))
                     : 0;
  double amplitude = 0;
  for (int i = 0; i < 4; ++i) {
    const double variance =
        unit * unit * (aligned * amplitude * amplitude + ordinary * ordinary_power);
    const double logit = std::max(smallest_logit, base + std::min(variance, 4.0) / 2);
    amplitude = logit / (unit * aligned * plan.key_amplitude);
  }
  return amplitude;
}

}  // namespace

RecipePlan plan_needle(const Problem& problem, const SlotMap& slots, std::uint64_t seed) {
  Planner planner(problem, slots, seed);
  RecipePlan plan;
  const Model& model = problem.model;
  // In MLA the head of a K row is V and stays ordinary; its tail (the rope part) is aligned, and q
  // is small outside it, so that V's values do not disturb the logits of the needles.
  const bool rope_tail = model.mla && model.v_head_dim < model.head_dim;
  plan.aligned_from = rope_tail ? model.v_head_dim : model.head_dim / 2;
  plan.q_exponent = rope_tail ? -2 : 0;
  plan.decoy_amplitude = plan.key_amplitude;
  const std::vector<PlannedRow> rows = planner.rows();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const bool last = i + 1 == rows.size() || rows[i + 1].request != rows[i].request;
    if (last) plant_needles(planner, rows[i]);
  }
  plan.plants = planner.take_plants();
  const std::vector<ContentKey> keys = needle_keys(plan.plants);
  plan.row_amplitude.assign(static_cast<std::size_t>(problem.total_new_tokens()), 1.0F);
  for (const PlannedRow& row : rows) {
    const std::int64_t needles =
        std::count_if(keys.begin(), keys.end(),
                      [&](const ContentKey& key) { return planner.sees(row.row, key); });
    const std::int64_t background = planner.visible(row.row) - needles;
    plan.row_amplitude[static_cast<std::size_t>(row.row)] =
        nearest(model.q_dtype, row_amplitude(model, plan, background, needles)) *
        sign_of_scale(model);
  }
  return plan;
}

}  // namespace attest
