#include "memory/planner.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "memory/amplitude.hpp"
#include "memory/counter_hash.hpp"

namespace attest {
namespace {

std::vector<PlannedRow> live_rows(const Problem& problem, std::uint64_t seed) {
  std::vector<PlannedRow> rows;
  const bool cross = problem.model.cross_attention;
  const std::uint64_t placement = stream_key(seed, Stream::placement);
  std::int64_t row = 0;
  for (std::size_t i = 0; i < problem.requests.size(); ++i) {
    const Request& r = problem.requests[i];
    for (std::int64_t t = 0; t < r.new_tokens; ++t, ++row) {
      if (!r.live) continue;
      PlannedRow planned = {row, i, t};
      planned.keys = cross ? r.encoder_tokens : r.kv_len();
      planned.own = cross ? r.encoder_tokens - 1 : r.committed + t;
      planned.first = problem.model.window
                          ? std::max<std::int64_t>(0, planned.own - *problem.model.window + 1)
                          : 0;
      planned.hash = chain(chain(placement, r.sequence), r.committed + t);
      rows.push_back(planned);
    }
  }
  return rows;
}

}  // namespace

Planner::Planner(const Problem& problem, const SlotMap& slots, std::uint64_t seed)
    : problem_(problem),
      slots_(slots),
      seed_(seed),
      meaning_(attended(problem)),
      rows_(live_rows(problem, seed)),
      index_(plants_) {}

ContentKey Planner::key_at(std::size_t request, std::int64_t index) const {
  const Request& r = problem_.requests[request];
  if (model().cross_attention) return {r.sequence, -1 - index};
  return content_of(r, index);
}

bool Planner::sees(std::int64_t row, const ContentKey& key) const {
  const std::vector<KeyRun>& runs = meaning_.rows[static_cast<std::size_t>(row)].keys;
  return std::any_of(runs.begin(), runs.end(), [&](const KeyRun& run) {
    return run.sequence == key.sequence && key.position >= run.first &&
           key.position < run.first + run.count;
  });
}

std::int64_t Planner::visible(std::int64_t row) const {
  return meaning_.rows[static_cast<std::size_t>(row)].visible();
}

ContentKey Planner::nth_visible(std::int64_t row, std::int64_t n) const {
  for (const KeyRun& run : meaning_.rows[static_cast<std::size_t>(row)].keys) {
    if (n < run.count) return {run.sequence, run.first + n};
    n -= run.count;
  }
  return {unknown_sequence, 0};
}

bool Planner::in_pool(std::size_t request, std::int64_t index) const {
  if (model().cross_attention) return true;
  return slots_.slot(request, index) >= 0;
}

bool Planner::taken(const ContentKey& key, std::int64_t kv_head) const {
  return index_.find(plants_, key, kv_head) >= 0;
}

bool Planner::plant(const Plant& plant) {
  if (taken(plant.key, plant.kv_head)) return false;
  plants_.push_back(plant);
  index_.add_last(plants_);
  return true;
}

double Planner::mean_log_visible() const {
  double sum = 0;
  std::int64_t count = 0;
  for (const PlannedRow& row : rows_) {
    const std::int64_t keys = visible(row.row);
    if (keys == 0) continue;
    sum += natural_log(static_cast<double>(keys));
    ++count;
  }
  return count == 0 ? 0 : sum / static_cast<double>(count);
}

std::vector<Plant> Planner::take_plants() {
  std::sort(plants_.begin(), plants_.end(), [](const Plant& a, const Plant& b) {
    return std::tuple(a.key.sequence, a.key.position, a.kv_head) <
           std::tuple(b.key.sequence, b.key.position, b.kv_head);
  });
  return std::exchange(plants_, {});
}

}  // namespace attest
