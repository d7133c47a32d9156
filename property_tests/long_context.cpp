#include "property_tests/long_context.hpp"

#include <algorithm>
#include <set>

#include "memory/counter_hash.hpp"
#include "memory/tensor_source.hpp"

namespace attest {
namespace {

/// Newest key of a row: its own token, or the last token of its encoder.
ContentKey newest_key(const AttendedRow& row) {
  ContentKey newest = {row.keys.front().sequence, row.keys.front().first};
  for (const KeyRun& run : row.keys) {
    const std::int64_t last = run.first < 0 ? run.first : run.first + run.count - 1;
    if (run.first < 0 || last > newest.position) newest = {run.sequence, last};
  }
  return newest;
}

bool sees_past(const AttendedRow& row, std::int64_t page) {
  bool inside = false;
  bool past = false;
  for (const KeyRun& run : row.keys) {
    inside = inside || (run.first >= 0 && run.first < page);
    past = past || run.first + run.count > page;
  }
  return inside && past;
}

/// Whether `recall` data gives its one key to a newest key and to one past the first page, in rows
/// of `meaning` that have a value. Costs the plan, not the reference.
bool recall_reaches_the_edges(const TensorSource& source, const Attended& meaning) {
  const std::int64_t page = source.problem().pool.page_size;
  const auto judged = [](const AttendedRow& row) { return row.expect == RowExpectation::value; };
  const auto has_others = [&](const AttendedRow& row) { return judged(row) && row.visible() > 1; };
  const auto spans_pages = [&](const AttendedRow& row) {
    return judged(row) && sees_past(row, page);
  };
  bool newest = std::none_of(meaning.rows.begin(), meaning.rows.end(), has_others);
  bool past = std::none_of(meaning.rows.begin(), meaning.rows.end(), spans_pages);
  for (const Plant& plant : source.plants()) {
    if (plant.decoy || plant.row < 0) continue;
    const AttendedRow& row = meaning.rows[static_cast<std::size_t>(plant.row)];
    newest = newest || (has_others(row) && plant.key == newest_key(row));
    past = past || (spans_pages(row) && plant.key.position >= page);
  }
  return newest && past;
}

bool looks_at_the_edges(const Case& c) {
  Attended meaning = attended(c.problem);
  sample_rows(c, meaning);
  return recall_reaches_the_edges(TensorSource(c.problem, c.recipe, c.seed, c.poison), meaning);
}

}  // namespace

std::string LongContext::name() const {
  return std::to_string(keys) + " keys, " + std::to_string(new_tokens) + " new token" +
         (new_tokens == 1 ? "" : "s");
}

std::vector<LongContext> long_contexts(const Capabilities& capabilities) {
  const Signature signature = capabilities.signature;
  const std::int64_t drafts = signature == Signature::decode ? 1 : 4;
  std::vector<LongContext> all;
  for (const std::int64_t keys :
       {std::int64_t{1} << 17, std::int64_t{1} << 19, std::int64_t{1} << 20}) {
    all.push_back({keys, drafts, signature});
  }
  if (signature == Signature::unified || signature == Signature::extend) {
    all.push_back({std::int64_t{1} << 17, 64, signature});
  }
  return all;
}

Case case_of(const LongContext& context, std::uint64_t index) {
  Case c;
  Problem& p = c.problem;
  p.model.num_q_heads = 4;
  p.model.num_kv_heads = 1;
  p.pool.page_size = 64;
  if (context.signature == Signature::mla_decode) {
    p.model.mla = true;
    p.model.num_q_heads = 16;
    p.model.head_dim = 576;
    p.model.v_head_dim = 512;
    p.pool.page_size = 1;
  }
  const bool decode = context.signature == Signature::decode;
  const bool chunk = context.new_tokens > 16;
  p.mode = decode ? Mode::decode : chunk ? Mode::extend : Mode::target_verify;
  if (p.mode == Mode::target_verify) p.num_draft_tokens = context.new_tokens;
  Request r;
  r.sequence = 1;
  r.new_tokens = context.new_tokens;
  r.committed = context.keys - context.new_tokens;
  p.requests = {r};
  p.pool.num_pages = context.keys / p.pool.page_size + 64;
  c.signature = context.signature;
  c.recipe = Recipe::recall;
  c.sampled_rows = 8;
  for (c.seed = (index << 16) + 1; !looks_at_the_edges(c); ++c.seed) {
  }
  return c;
}

std::vector<std::int64_t> sample_rows(const Case& c, Attended& meaning) {
  const auto count = static_cast<std::int64_t>(meaning.rows.size());
  if (c.sampled_rows <= 0 || count <= c.sampled_rows) return {};
  const std::vector<std::int64_t> rows = sampled_rows(count, c.sampled_rows, c.seed);
  for (std::int64_t row = 0; row < count; ++row) {
    if (std::binary_search(rows.begin(), rows.end(), row)) continue;
    AttendedRow& left_out = meaning.rows[static_cast<std::size_t>(row)];
    if (left_out.expect == RowExpectation::value) left_out.expect = RowExpectation::any;
  }
  return rows;
}

std::vector<std::int64_t> sampled_rows(std::int64_t rows, std::int64_t most, std::uint64_t seed) {
  std::set<std::int64_t> chosen;
  const auto add = [&](std::int64_t row) {
    const auto room = static_cast<std::int64_t>(chosen.size()) < most;
    if (row >= 0 && row < rows && room) chosen.insert(row);
  };
  add(0);
  add(rows - 1);
  // Half of the rest where blocks of rows begin and end.
  for (const std::int64_t block : {64, 32, 16}) {
    for (std::int64_t row = block; row < rows; row += block) {
      if (static_cast<std::int64_t>(chosen.size()) > most / 2) break;
      add(row - 1);
      add(row);
    }
  }
  const std::int64_t wanted = std::min(rows, most);
  for (std::int64_t i = 0; static_cast<std::int64_t>(chosen.size()) < wanted; ++i) {
    add(below(chain(mix64(seed), i), rows));
  }
  return {chosen.begin(), chosen.end()};
}

}  // namespace attest
