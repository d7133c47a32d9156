#include "property_tests/misread/given_back.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "property_tests/meaning_edits.hpp"

namespace attest {
namespace {

using Positions = std::vector<std::vector<std::int64_t>>;  // of each row

bool is_given_back(const TensorSource& source, std::int64_t request, std::int64_t position) {
  const auto at = static_cast<std::size_t>(request);
  return position < source.problem().requests[at].committed &&
         source.slots().slot(at, position) < 0;
}

bool any_is_given_back(const TensorSource& source) {
  for (std::size_t i = 0; i < source.problem().requests.size(); ++i) {
    for (std::int64_t t = 0; t < source.problem().requests[i].committed; ++t) {
      if (source.slots().slot(i, t) < 0) return true;
    }
  }
  return false;
}

/// The positions that a row sees; nothing where some key is not its request's own.
std::optional<std::vector<std::int64_t>> own_positions(const Request& r, const AttendedRow& row) {
  std::vector<std::int64_t> positions;
  for (const KeyRun& run : row.keys) {
    std::vector<KeyRun> own;
    add_positions(r, run.first, run.first + run.count, own);
    if (canonical(std::move(own)) != canonical({run})) return std::nullopt;
    for (std::int64_t i = 0; i < run.count; ++i) positions.push_back(run.first + i);
  }
  std::sort(positions.begin(), positions.end());
  return positions;
}

/// What rows see by a meaning that differs in nothing else, where that holds a given-back key.
std::optional<Positions> dead_positions(const Failure& failure, const Attended& meaning) {
  const Problem& problem = failure.source.problem();
  Attended other = failure.meaning;
  Positions all;
  bool dead = false;
  for (std::size_t r = 0; r < meaning.rows.size(); ++r) {
    const AttendedRow& row = meaning.rows[r];
    other.rows[r].keys = row.keys;
    auto& positions = all.emplace_back();
    if (row.expect != RowExpectation::value) continue;
    auto own = own_positions(request_of(problem, row), row);
    if (!own) return std::nullopt;
    positions = *std::move(own);
    dead = dead || std::ranges::any_of(positions, [&](std::int64_t position) {
             return is_given_back(failure.source, row.request, position);
           });
  }
  return dead && other == meaning ? std::optional(std::move(all)) : std::nullopt;
}

}  // namespace

std::vector<Misreading> readings_of_given_back_keys(const Failure& failure,
                                                    const std::vector<Hypothesis>& hypotheses) {
  std::vector<Misreading> list;
  const Problem& problem = failure.source.problem();
  if (problem.model.cross_attention || !any_is_given_back(failure.source)) return list;
  for (const Hypothesis& one : hypotheses) {
    if (one.k_head_shift != 0 || one.v_head_shift != 0 || one.factor != nullptr) continue;
    Attended meaning = failure.meaning;
    if (!one.apply(problem, meaning)) continue;
    auto positions = dead_positions(failure, meaning);
    if (!positions) continue;
    list.push_back({.id = std::string(one.id),
                    .says = std::string(one.says),
                    .keys =
                        [of = *std::move(positions)](const Seen& s, std::vector<ReadKey>& keys) {
                          keys.clear();
                          for (const std::int64_t p : of[static_cast<std::size_t>(s.place.row)]) {
                            keys.push_back({p});
                          }
                        },
                    .look = one.look});
  }
  return list;
}

}  // namespace attest
