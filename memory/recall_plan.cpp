#include <algorithm>
#include <map>
#include <vector>

#include "memory/amplitude.hpp"
#include "memory/counter_hash.hpp"
#include "memory/planner.hpp"

namespace attest {
namespace {

constexpr double recall_logit = 16;
constexpr std::int64_t tile = 64;  // keys per step of the usual kernels
/// Special places use at most this many of the q heads' turns; the other turns are random.
constexpr std::int64_t turns = 16;

/// Indices of the row's key list where kernels go wrong. Not all of them need be visible.
std::vector<std::int64_t> special_places(const Planner& planner, const PlannedRow& row) {
  const Request& request = planner.problem().requests[row.request];
  const std::int64_t committed = planner.model().cross_attention ? row.keys : request.committed;
  const std::int64_t page = planner.problem().pool.page_size;
  const auto border = [&](std::int64_t step, std::uint64_t salt) {
    const std::int64_t low = row.first / step + 1;
    const std::int64_t borders = row.own / step - low + 1;
    return borders < 1 ? 0 : (low + below(mix64(row.hash + salt), borders)) * step;
  };
  const std::int64_t page_border = border(page, 1);
  return {row.own,
          committed - 1,
          committed - 2,
          row.first,
          page_border,
          page_border - 1,
          row.first + 1,
          border(tile, 2),
          border(tile, 3) - 1,
          row.own - 1,
          (row.first + row.own) / 2};
}

bool place_owner(Planner& planner, const PlannedRow& row, std::int64_t q_head, std::int64_t index) {
  if (index < 0 || index >= row.keys) return false;
  const ContentKey key = planner.key_at(row.request, index);
  if (!planner.sees(row.row, key)) return false;
  return planner.plant({key, q_head / planner.group(), row.row, q_head, false});
}

/// Gives one (row, q head) a key of its own, or none when what it sees is full.
void place(Planner& planner, const PlannedRow& row, std::int64_t q_head,
           const std::vector<std::int64_t>& special) {
  const std::uint64_t hash = chain(row.hash, q_head);
  const std::int64_t turn = (q_head + below(row.hash, turns)) % turns;
  if (turn < static_cast<std::int64_t>(special.size()) &&
      place_owner(planner, row, q_head, special[static_cast<std::size_t>(turn)])) {
    return;
  }
  const std::int64_t visible = planner.visible(row.row);
  // Short rows are searched through; in long ones a few draws find a free key unless most are
  // taken.
  constexpr std::int64_t searched = 64;
  constexpr std::int64_t draws = 8;
  const bool search = visible <= searched;
  const std::int64_t start = visible > 0 ? below(hash, visible) : 0;
  for (std::int64_t n = 0; n < (search ? visible : draws); ++n) {
    const std::uint64_t draw = mix64(hash + static_cast<std::uint64_t>(n));
    const std::int64_t nth = search ? (start + n) % visible : below(draw, visible);
    const ContentKey key = planner.nth_visible(row.row, nth);
    if (planner.plant({key, q_head / planner.group(), row.row, q_head, false})) return;
  }
}

/// Every second (place, kv head) goes to decoys, alternating with the seed, so that own keys and
/// decoys both occur at each kind of place.
bool decoys_turn(const Planner& planner, const ContentKey& key, std::int64_t kv_head) {
  const auto sum = static_cast<std::uint64_t>(key.position + kv_head) + planner.seed();
  return sum % 2 == 1;
}

void plant_decoy(Planner& planner, const PlannedRow& victim, const ContentKey& key,
                 std::int64_t kv_head) {
  const std::int64_t member =
      below(mix64(victim.hash + static_cast<std::uint64_t>(kv_head)), planner.group());
  planner.plant({key, kv_head, victim.row, kv_head * planner.group() + member, true});
}

/// Rows that might wrongly see the new token of rows()[at]: its own request's, and those of
/// branches that share its prefix.
using Families = std::map<std::int64_t, std::vector<std::size_t>>;

Families branch_families(const Planner& planner) {
  Families families;
  for (std::size_t at = 0; at < planner.rows().size(); ++at) {
    const Request& r = planner.problem().requests[planner.rows()[at].request];
    if (r.shared_prefix > 0) families[r.shared_sequence].push_back(at);
  }
  return families;
}

/// A decoy on the key of rows()[at] for a row that must not see it: the row just before (a causal
/// mask off by one), else another token or branch.
void decoy_on_new_token(Planner& planner, std::size_t at, const Families& families,
                        std::int64_t kv_head) {
  const PlannedRow& row = planner.rows()[at];
  const Request& request = planner.problem().requests[row.request];
  const ContentKey key = planner.key_at(row.request, row.own);
  if (!decoys_turn(planner, key, kv_head)) return;
  const std::uint64_t hash = chain(row.hash, kv_head);
  const std::size_t first_of_request = at - static_cast<std::size_t>(row.token);
  for (std::uint64_t attempt = 0; attempt < 4; ++attempt) {
    const std::uint64_t draw = mix64(hash + attempt);
    std::size_t victim =
        first_of_request + static_cast<std::size_t>(below(draw, request.new_tokens));
    if (attempt == 0 && row.token > 0 && (draw & 1U) != 0) victim = at - 1;
    if (attempt == 3 && request.shared_prefix > 0) {
      const std::vector<std::size_t>& family = families.at(request.shared_sequence);
      victim =
          family[static_cast<std::size_t>(below(draw, static_cast<std::int64_t>(family.size())))];
    }
    if (planner.sees(planner.rows()[victim].row, key)) continue;
    return plant_decoy(planner, planner.rows()[victim], key, kv_head);
  }
}

/// Decoys just outside the window and somewhere before it.
void decoys_outside_window(Planner& planner, const PlannedRow& row, std::int64_t kv_head) {
  if (row.first == 0) return;
  const std::uint64_t hash = chain(row.hash, kv_head);
  for (const std::int64_t index : {row.first - 1, below(hash, row.first)}) {
    const ContentKey key = planner.key_at(row.request, index);
    if (!decoys_turn(planner, key, kv_head) || !planner.in_pool(row.request, index)) continue;
    if (!planner.sees(row.row, key)) plant_decoy(planner, row, key, kv_head);
  }
}

void place_decoys(Planner& planner) {
  if (planner.model().cross_attention) return;  // no row may see less than its encoder tokens
  const Families families = branch_families(planner);
  for (std::int64_t kv_head = 0; kv_head < planner.model().num_kv_heads; ++kv_head) {
    for (std::size_t at = 0; at < planner.rows().size(); ++at) {
      decoy_on_new_token(planner, at, families, kv_head);
      decoys_outside_window(planner, planner.rows()[at], kv_head);
    }
  }
}

}  // namespace

RecipePlan plan_recall(const Problem& problem, const SlotMap& slots, std::uint64_t seed) {
  Planner planner(problem, slots, seed);
  RecipePlan plan;
  place_decoys(planner);
  for (const PlannedRow& row : planner.rows()) {
    const std::vector<std::int64_t> special = special_places(planner, row);
    for (std::int64_t head = 0; head < problem.model.num_q_heads; ++head) {
      place(planner, row, head, special);
    }
  }
  const double aligned = logit_per_element(problem.model) * plan.key_amplitude *
                         static_cast<double>(problem.model.head_dim);
  const float amplitude = representable(problem.model.q_dtype, recall_logit / aligned);
  plan.row_amplitude.assign(static_cast<std::size_t>(problem.total_new_tokens()),
                            amplitude * sign_of_scale(problem.model));
  plan.plants = planner.take_plants();
  return plan;
}

}  // namespace attest
