#include <algorithm>
#include <array>
#include <cmath>

#include "property_tests/diagnose.hpp"
#include "property_tests/meaning_edits.hpp"

namespace attest {
namespace {

// --- Keys, by how many ---

template <std::int64_t by>
bool ends_moved(const Problem& p, Attended& m) {
  return see_positions(
      p, m, [](const Request&, std::int64_t, std::int64_t&, std::int64_t& last) { last += by; });
}

template <std::int64_t count>
bool newest_committed_missing(const Problem& p, Attended& m) {
  return edit_keys(m, [&](const AttendedRow& row, std::vector<KeyRun>& keys) {
    const std::int64_t committed = request_of(p, row).committed;
    drop_positions(keys, std::max<std::int64_t>(0, committed - count), committed);
  });
}

template <std::int64_t by>
bool window_moved(const Problem& p, Attended& m) {
  if (!p.model.window) return false;
  return see_positions(p, m, [](const Request&, std::int64_t, std::int64_t& first, std::int64_t&) {
    if (first > 0) first = std::max<std::int64_t>(0, first + by);
  });
}

bool window_in_whole_pages(const Problem& p, Attended& m) {
  if (!p.model.window) return false;
  const std::int64_t page = p.pool.page_size;
  const std::int64_t pages = std::max<std::int64_t>(1, *p.model.window / page);
  return see_positions(p, m,
                       [&](const Request& r, std::int64_t, std::int64_t& first, std::int64_t&) {
                         first = std::max(first, ((r.kv_len() + page - 1) / page - pages) * page);
                       });
}

bool rows_see_what_the_first_sees(const Problem& p, Attended& m) {
  return see_positions(
      p, m, [](const Request& r, std::int64_t t, std::int64_t& first, std::int64_t& last) {
        last = r.committed + 1;
        first = std::max<std::int64_t>(0, first - t);
      });
}

// --- Tiles, splits, pages ---

constexpr std::int64_t tile = 64;

/// Where the second of two splits begins.
std::int64_t half_of(const Request& r) {
  const std::int64_t tiles = (r.kv_len() + tile - 1) / tile;
  return (tiles + 1) / 2 * tile;
}

/// Drops positions [first(request), last(request)).
template <class First, class Last>
bool without(const Problem& p, Attended& m, First&& first, Last&& last) {
  return edit_keys(m, [&](const AttendedRow& row, std::vector<KeyRun>& keys) {
    const Request& r = request_of(p, row);
    drop_positions(keys, first(r), last(r));
  });
}

std::int64_t zero(const Request&) { return 0; }
std::int64_t end_of(const Request& r) { return r.kv_len(); }
std::int64_t last_tile_of(const Request& r) { return r.kv_len() / tile * tile; }

bool last_tile_missing(const Problem& p, Attended& m) {
  return without(p, m, last_tile_of, end_of);
}
bool first_tile_missing(const Problem& p, Attended& m) {
  return without(p, m, zero, [](const Request&) { return tile; });
}
bool first_page_missing(const Problem& p, Attended& m) {
  if (p.pool.page_size == 1) return false;
  return without(p, m, zero, [&](const Request&) { return p.pool.page_size; });
}
bool first_split_missing(const Problem& p, Attended& m) { return without(p, m, zero, half_of); }
bool last_split_twice(const Problem& p, Attended& m) {
  return edit_keys(m, [&](const AttendedRow& row, std::vector<KeyRun>& keys) {
    std::vector<KeyRun> again = keys;
    drop_positions(again, 0, half_of(request_of(p, row)));
    keys.insert(keys.end(), again.begin(), again.end());
  });
}

// --- Factors on the scores ---

template <int numerator, int denominator>
bool scale_by(const Problem&, Attended& m) {
  m.scale = m.scale * numerator / denominator;
  return true;
}

bool k_descale_twice(const Problem& p, Attended& m) {
  m.scale *= p.model.k_descale.value_or(1);
  return p.model.k_descale.value_or(1) != 1;
}

// --- Factors on the output ---

/// No key changes; the factor does it all.
bool has_sinks(const Problem& p, Attended&) { return p.model.sinks; }
bool has_v_descale(const Problem& p, Attended&) {
  return p.model.v_descale && *p.model.v_descale != 1;
}
/// q's and K's are factors on the scale; V's is one on the output.
bool without_descales(const Problem& p, Attended& m) {
  m.scale /= p.model.q_descale.value_or(1) * p.model.k_descale.value_or(1);
  return p.model.v_descale.value_or(1) != 1 &&
         p.model.q_descale.value_or(1) * p.model.k_descale.value_or(1) != 1;
}
bool has_other_v_descale(const Problem& p, Attended&) {
  return p.model.v_descale && p.model.v_descale != p.model.k_descale;
}

/// The output of a row whose softmax sum, sink included, grows by `more` (times e^lse).
double of_larger_sum(double more) { return 1 / (1 + more); }

double sink_weight(const Expected& e, const TensorSource& s, std::int64_t row, std::int64_t head,
                   double logit) {
  return s.problem().model.sinks ? std::exp(logit - e.lse[e.row_index(row, head)]) : 0;
}
double sink_twice(const Expected& e, const TensorSource& s, std::int64_t row, std::int64_t head) {
  return of_larger_sum(sink_weight(e, s, row, head, s.sink(head)));
}
double sink_of_next_head(const Expected& e, const TensorSource& s, std::int64_t row,
                         std::int64_t head) {
  const std::int64_t next = (head + 1) % e.heads;
  return of_larger_sum(sink_weight(e, s, row, head, s.sink(next)) -
                       sink_weight(e, s, row, head, s.sink(head)));
}
double sink_in_base_2(const Expected& e, const TensorSource& s, std::int64_t row,
                      std::int64_t head) {
  constexpr double ln_2 = 0.6931471805599453;
  return of_larger_sum(sink_weight(e, s, row, head, s.sink(head) * ln_2) -
                       sink_weight(e, s, row, head, s.sink(head)));
}
double sink_scaled(const Expected& e, const TensorSource& s, std::int64_t row, std::int64_t head) {
  const Model& m = s.problem().model;
  const double scale = m.softmax_scale * m.q_descale.value_or(1) * m.k_descale.value_or(1);
  return of_larger_sum(sink_weight(e, s, row, head, s.sink(head) * scale) -
                       sink_weight(e, s, row, head, s.sink(head)));
}
double v_descale_missing(const Expected&, const TensorSource& s, std::int64_t, std::int64_t) {
  return 1 / s.problem().model.v_descale.value_or(1);
}
double v_descale_is_ks(const Expected&, const TensorSource& s, std::int64_t, std::int64_t) {
  const Model& m = s.problem().model;
  return m.k_descale.value_or(1) / m.v_descale.value_or(1);
}
double v_descale_twice(const Expected&, const TensorSource& s, std::int64_t, std::int64_t) {
  return s.problem().model.v_descale.value_or(1);
}

constexpr Hypothesis factor_of(std::string_view id, std::string_view says, std::string_view look,
                               bool (*apply)(const Problem&, Attended&), OutputFactor factor,
                               bool in_the_sum) {
  Hypothesis h{id, says, look, apply};
  h.factor = factor;
  h.factor_is_of_the_sum = in_the_sum;
  return h;
}

// What to look at where several rows are about the same place of a kernel.
constexpr std::string_view bound_of_keys =
    "the bound of the loop over keys and the lengths passed: what is added or taken off twice";

constexpr std::array table = {
    Hypothesis{"keys_short_by_2", "every row sees two keys too few", bound_of_keys, ends_moved<-2>},
    Hypothesis{"keys_short_by_3", "every row sees three keys too few", bound_of_keys,
               ends_moved<-3>},
    Hypothesis{"keys_short_by_4", "every row sees four keys too few", bound_of_keys,
               ends_moved<-4>},
    Hypothesis{"keys_long_by_2", "every row sees two keys too many", bound_of_keys, ends_moved<2>},
    Hypothesis{"keys_long_by_3", "every row sees three keys too many", bound_of_keys,
               ends_moved<3>},
    Hypothesis{"newest_committed_key_missing", "the newest committed key is missing",
               "the seam between committed and new keys: `prefix - 1` as an exclusive bound",
               newest_committed_missing<1>},
    Hypothesis{"newest_two_committed_keys_missing", "the two newest committed keys are missing",
               "the seam between committed and new keys: `prefix - 2` as an exclusive bound",
               newest_committed_missing<2>},
    Hypothesis{"window_two_short", "the window is two keys too short",
               "one taken off the window twice: by the caller and by the kernel", window_moved<2>},
    Hypothesis{"window_two_long", "the window is two keys too long",
               "one added to the window twice: by the caller and by the kernel", window_moved<-2>},
    Hypothesis{"window_in_whole_pages", "the window is cut to whole pages",
               "`window / page_size` pages from the last one: the rest of the window is lost",
               window_in_whole_pages},
    Hypothesis{"rows_see_what_the_first_sees", "all rows of a request see what its first row sees",
               "the causal bound: computed once for a request, for its first row",
               rows_see_what_the_first_sees},
    Hypothesis{"last_tile_missing", "keys after the last whole tile of 64 are missing",
               "the number of tiles: `len / 64` rounded down, or no masked tail",
               last_tile_missing},
    Hypothesis{"first_tile_missing", "the first tile of 64 keys is missing",
               "where the loop over tiles begins: 1 for 0", first_tile_missing},
    Hypothesis{"first_page_missing", "the first page is missing",
               "where the loop over pages begins: 1 for 0", first_page_missing},
    Hypothesis{"first_split_missing", "the first of two splits is missing",
               "the reduction over splits: begins at 1, or split 0 overwritten before it is merged",
               first_split_missing},
    Hypothesis{"last_split_twice", "the second of two splits counts twice",
               "the reduction over splits: one read in another's place, or one too many",
               last_split_twice},
    Hypothesis{"scale_doubled", "the softmax scale is twice too large",
               "softmax_scale: the square root of another head size, or a factor of two in exp2's "
               "constant",
               scale_by<2, 1>},
    Hypothesis{"scale_halved", "the softmax scale is half of what it should be",
               "softmax_scale: the square root of another head size, or a factor of two in exp2's "
               "constant",
               scale_by<1, 2>},
    factor_of("sink_twice", "the sinks count twice",
              "the sink in every split or pass, and again in their merge", has_sinks, sink_twice,
              true),
    factor_of("sink_of_next_head", "each head takes the next head's sink",
              "the index into the sinks: the query head's number, not one further", has_sinks,
              sink_of_next_head, true),
    factor_of("sink_in_base_2", "the sinks are not brought to base 2 before exp2",
              "`exp2(sink - max)` wants the sink times log2(e)", has_sinks, sink_in_base_2, true),
    Hypothesis{"k_descale_twice", "K's descale is applied twice",
               "k_descale in the scale, and again where K is loaded", k_descale_twice},
    factor_of("sink_scaled", "the sinks are multiplied with the scale",
              "where the sink joins the scores: after softmax_scale, not before", has_sinks,
              sink_scaled, true),
    factor_of("descales_missing", "the descales of q, K and V are missing",
              "whether q_descale, k_descale and v_descale reach the kernel", without_descales,
              v_descale_missing, false),
    factor_of("v_descale_missing", "V's descale is missing",
              "the factor on the output: v_descale (v_scale), and whether it is passed",
              has_v_descale, v_descale_missing, false),
    factor_of("v_descale_is_ks", "V is descaled with K's factor",
              "the order of the arguments k_descale and v_descale, and the load of V",
              has_other_v_descale, v_descale_is_ks, false),
    factor_of("v_descale_twice", "V's descale is applied twice",
              "v_descale where V is loaded and again on the output, or in splits and merge",
              has_v_descale, v_descale_twice, false),
};

}  // namespace

std::vector<Hypothesis> parametric_hypotheses() { return {table.begin(), table.end()}; }

void apply_factor(const Hypothesis& hypothesis, const TensorSource& source, Expected& expected) {
  if (hypothesis.factor == nullptr) return;
  const Expected truth = expected;
  for (std::int64_t row = 0; row < expected.rows; ++row) {
    if (expected.computed[static_cast<std::size_t>(row)] == 0) continue;
    for (std::int64_t head = 0; head < expected.heads; ++head) {
      const double factor = hypothesis.factor(truth, source, row, head);
      const std::size_t at = expected.row_index(row, head);
      if (hypothesis.factor_is_of_the_sum) expected.lse[at] -= std::log(factor);
      if (!expected.w2.empty()) expected.w2[at] *= factor * factor;
      for (std::int64_t d = 0; d < expected.dim; ++d) {
        const std::size_t i = expected.index(row, head, d);
        expected.out[i] *= factor;
        if (expected.abs_v.empty()) continue;
        expected.abs_v[i] *= factor;
        expected.w2v[i] *= factor * factor;
        expected.w2v2[i] *= factor * factor;
      }
    }
  }
}

}  // namespace attest
