// The oracles that assume independent roundings: z and gain.

#include <cmath>
#include <sstream>
#include <vector>

#include "reference/oracles.hpp"
#include "reference/row_statistics.hpp"

namespace attest {
namespace {

RowStatistics statistics_of(const Comparison& c, std::int64_t row, std::int64_t head) {
  const std::span<const float> got(c.got.values);
  return row_statistics(c.errors, c.expected, row, head,
                        got.subspan(c.got.index(row, head), static_cast<std::size_t>(c.got.dim)));
}

std::string gain_detail(const std::string& place, double error, double limit) {
  std::ostringstream os;
  os.precision(6);
  os << (place.empty() ? "whole output" : place) << ": got / expected = " << 1 + error
     << " on average, must be 1 within " << limit;
  return os.str();
}

}  // namespace

OracleResult judge_z(const Comparison& c) {
  Tally tally;
  std::string worst;
  for (const std::int64_t row : c.value_rows) {
    for (std::int64_t head = 0; head < c.got.heads; ++head) {
      const double z = statistics_of(c, row, head).z;
      if (!tally.see(z, *c.z_limit(), row, head)) continue;
      std::ostringstream os;
      os.precision(4);
      os << c.place(row, head) << ": z " << z << ", limit " << *c.z_limit();
      worst = os.str();
    }
  }
  return tally.result(worst);
}

OracleResult judge_gain(const Comparison& c) {
  Tally tally;
  std::string worst;
  GainEstimate whole;
  std::vector<GainEstimate> heads(static_cast<std::size_t>(c.got.heads));
  const auto judge = [&](const GainEstimate& gain, std::int64_t row, std::int64_t head) {
    if (gain.empty()) return;
    const double limit = gain.limit();
    if (tally.see(std::abs(gain.error()), limit, row, head)) {
      worst = gain_detail(c.place(row, head), gain.error(), limit);
    }
  };
  for (const std::int64_t row : c.value_rows) {
    GainEstimate over_heads;
    for (std::int64_t head = 0; head < c.got.heads; ++head) {
      const RowStatistics statistics = statistics_of(c, row, head);
      over_heads.add(statistics);
      heads[static_cast<std::size_t>(head)].add(statistics);
      whole.add(statistics);
    }
    judge(over_heads, row, -1);
  }
  for (std::size_t head = 0; head < heads.size(); ++head) {
    judge(heads[head], -1, static_cast<std::int64_t>(head));
  }
  judge(whole, -1, -1);
  return tally.result(worst);
}

}  // namespace attest
