#include "contracts/problem.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <sstream>

#include "contracts/byte_overlap.hpp"
#include "contracts/signatures/pool_view.hpp"
#include "contracts/slot_map.hpp"

namespace attest {
namespace {

constexpr std::array<std::string_view, 7> mode_names = {
    "decode", "idle", "extend", "mixed", "target_verify", "draft_extend_v2", "draft_decode"};
constexpr std::array<std::string_view, 3> path_names = {"eager", "capture", "replay"};
constexpr std::array<std::string_view, 3> placement_names = {"permuted", "sequential", "high"};

template <class Enum, std::size_t n>
std::optional<Enum> from_name(const std::array<std::string_view, n>& names, std::string_view text) {
  const auto* const at = std::find(names.begin(), names.end(), text);
  if (at == names.end()) return std::nullopt;
  return static_cast<Enum>(at - names.begin());
}

// Generous limits that keep every later product inside 63 bits and every allocation sane.
constexpr std::int64_t max_heads = 4096;
constexpr std::int64_t max_dim = 4096;
constexpr std::int64_t max_page_size = 1 << 20;
constexpr std::int64_t max_tokens = std::int64_t{1} << 31;
constexpr std::int64_t max_batch = 1 << 16;
constexpr std::int64_t max_pages_of_batch = 1 << 24;
constexpr std::int64_t max_pool_bytes = std::int64_t{1} << 50;
/// Scales of the scores within 2^-100 .. 2^100: what a float32 kernel multiplies stays finite and
/// normal for the elements of every dtype. Values, too, and in f16 outputs below that type's end.
constexpr double largest_factor = 0x1p100;
constexpr double largest_f16_factor = 128;

/// Collects the first error; every later check is then skipped.
class Checker {
 public:
  /// `value` lies in [low, high].
  void range(const std::string& where, std::int64_t value, std::int64_t low, std::int64_t high) {
    if (error_ || (value >= low && value <= high)) return;
    error_ = where + " = " + std::to_string(value) + ", must be in [" + std::to_string(low) + ", " +
             std::to_string(high) + "]";
  }
  void require(bool ok, const std::string& message) {
    if (!error_ && !ok) error_ = message;
  }
  bool failed() const { return error_.has_value(); }
  const std::optional<std::string>& error() const { return error_; }

 private:
  std::optional<std::string> error_;
};

std::string shown(double value) {
  std::ostringstream os;
  os << value;
  return os.str();
}

/// `value` can be a factor of float32 arithmetic.
void check_factor(const std::string& where, double value, double largest, Checker& check) {
  const double size = std::abs(value);
  check.require(size == 0 || (size >= 1 / largest_factor && size <= largest),
                where + " = " + shown(value) + ", no float32 kernel can compute with it: must be " +
                    "within " + shown(1 / largest_factor) + " .. " + shown(largest));
}

void check_factors(const Model& m, Checker& check) {
  check.require(std::isfinite(m.softmax_scale), "model.softmax_scale must be finite");
  check.require(std::isfinite(m.softcap) && m.softcap >= 0,
                "model.softcap must be finite and >= 0");
  for (const auto& descale : {m.q_descale, m.k_descale, m.v_descale}) {
    check.require(!descale || (std::isfinite(*descale) && *descale > 0),
                  "model: descales must be finite and > 0");
  }
  if (check.failed()) return;
  const double q = m.q_descale.value_or(1), k = m.k_descale.value_or(1);
  check_factor("model.softmax_scale", m.softmax_scale, largest_factor, check);
  check_factor("model.softcap", m.softcap, largest_factor, check);
  check_factor("model.q_descale", q, largest_factor, check);
  check_factor("model.k_descale", k, largest_factor, check);
  check_factor("model.softmax_scale * q_descale * k_descale", m.softmax_scale * q * k,
               largest_factor, check);
  check_factor("model.v_descale", m.v_descale.value_or(1),
               m.out_dtype == Dtype::f16 ? largest_f16_factor : largest_factor, check);
}

void check_model(const Model& m, Checker& check) {
  check.range("model.num_q_heads", m.num_q_heads, 1, max_heads);
  check.range("model.num_kv_heads", m.num_kv_heads, 1, max_heads);
  check.range("model.head_dim", m.head_dim, 1, max_dim);
  check.range("model.v_head_dim", m.v_head_dim, 1, max_dim);
  if (check.failed()) return;
  check.require(m.num_q_heads % m.num_kv_heads == 0,
                "model.num_q_heads = " + std::to_string(m.num_q_heads) +
                    ", must be a multiple of num_kv_heads = " + std::to_string(m.num_kv_heads));
  check.require(is_floating(m.q_dtype) && is_floating(m.kv_dtype) && is_floating(m.out_dtype),
                "model: q_dtype, kv_dtype and out_dtype must be floating types");
  check_factors(m, check);
  if (m.window) check.range("model.window", *m.window, 1, max_tokens);
  check.require(!m.mla || (m.num_kv_heads == 1 && m.v_head_dim <= m.head_dim),
                "model.mla needs num_kv_heads = 1 and v_head_dim <= head_dim");
  check.require(!m.cross_attention || !m.window, "model.window has no meaning in cross attention");
}

void check_request(const Problem& p, std::size_t i, Checker& check) {
  const Request& r = p.requests[i];
  const std::string at = "requests[" + std::to_string(i) + "].";
  check.range(at + "sequence", r.sequence, 0, std::int64_t{1} << 48);
  check.range(at + "committed", r.committed, 0, max_tokens);
  check.range(at + "new_tokens", r.new_tokens, 0, max_tokens);
  check.range(at + "shared_prefix", r.shared_prefix, 0, r.committed);
  check.range(at + "shared_sequence", r.shared_sequence, 0, std::int64_t{1} << 48);
  check.range(at + "encoder_tokens", r.encoder_tokens, 0, max_tokens);
  check.require(!p.model.cross_attention || !r.live || r.encoder_tokens > 0,
                at + "encoder_tokens = 0, cross attention needs at least 1");
  if (r.tree_parent.empty()) return;
  check.require(!p.model.window, at + "tree_parent: a draft tree and a window exclude each other");
  check.require(static_cast<std::int64_t>(r.tree_parent.size()) == r.new_tokens,
                at + "tree_parent has " + std::to_string(r.tree_parent.size()) +
                    " entries, new_tokens = " + std::to_string(r.new_tokens));
  for (std::size_t t = 0; t < r.tree_parent.size() && !check.failed(); ++t) {
    check.range(at + "tree_parent[" + std::to_string(t) + "]", r.tree_parent[t], -1,
                static_cast<std::int64_t>(t) - 1);
  }
}

void check_strides(const Problem& p, const KvStrides& s, const std::string& at, std::int64_t dim,
                   Checker& check) {
  check.range(at + ".page", s.page, 0, max_pool_bytes);
  check.range(at + ".slot", s.slot, 0, max_pool_bytes / p.pool.page_size);
  check.range(at + ".head", s.head, 0, max_pool_bytes / p.model.num_kv_heads);
  check.range(at + ".base", s.base, 0, max_pool_bytes);
  if (check.failed()) return;
  const std::int64_t slot = s.slot ? s.slot : p.model.num_kv_heads * dim;
  std::int64_t page = s.page;
  std::int64_t bytes = 0;
  const bool overflow = (page == 0 && __builtin_mul_overflow(slot, p.pool.page_size, &page)) ||
                        __builtin_mul_overflow(page, p.pool.num_pages, &bytes) ||
                        __builtin_mul_overflow(
                            bytes, static_cast<std::int64_t>(size_bytes(p.model.kv_dtype)), &bytes);
  check.require(!overflow && bytes <= max_pool_bytes, at + ": the pool is larger than 2^50 bytes");
  if (check.failed()) return;
  check.require(!overlaps_itself(paged_view(p, s, dim)),
                at + ": tokens or heads that share bytes: heads of " + std::to_string(dim) +
                    " elements, strides head " + std::to_string(s.head) + ", slot " +
                    std::to_string(s.slot) + ", page " + std::to_string(s.page) + " (0 is dense)");
}

void check_slots(const Problem& p, Checker& check) {
  if (p.pool.slots.empty()) return;
  check.require(p.pool.slots.size() == p.requests.size(),
                "pool.slots has " + std::to_string(p.pool.slots.size()) + " entries, requests " +
                    std::to_string(p.requests.size()));
  const std::int64_t slot_count = p.pool.num_pages * p.pool.page_size;
  for (std::size_t i = 0; i < p.pool.slots.size() && !check.failed(); ++i) {
    std::int64_t tokens = 0;
    const std::string at = "pool.slots[" + std::to_string(i) + "]";
    for (std::size_t r = 0; r < p.pool.slots[i].size() && !check.failed(); ++r) {
      const SlotRun& run = p.pool.slots[i][r];
      const std::string here = at + "[" + std::to_string(r) + "]";
      check.range(here + ".first", run.first, -1, slot_count - 1);
      check.range(here + ".count", run.count, 1,
                  run.first < 0 ? max_tokens : slot_count - run.first);
      tokens += check.failed() ? 0 : run.count;
    }
    check.require(!p.requests[i].live || tokens == p.requests[i].kv_len(),
                  at + " holds " + std::to_string(tokens) + " tokens, the request has " +
                      std::to_string(p.requests[i].kv_len()));
    check.require(p.requests[i].encoder_tokens == 0,
                  at + ": listed slots do not cover encoder tokens");
  }
}

void check_batch(const Problem& p, Checker& check) {
  check.range("requests.size()", static_cast<std::int64_t>(p.requests.size()), 1, max_batch);
  for (std::size_t i = 0; i < p.requests.size() && !check.failed(); ++i) {
    check_request(p, i, check);
  }
  if (check.failed()) return;
  std::int64_t pages = 0;
  std::int64_t rows = 0;
  for (const Request& r : p.requests) {
    pages += (r.kv_len() + p.pool.page_size - 1) / p.pool.page_size;
    pages += (r.encoder_tokens + p.pool.page_size - 1) / p.pool.page_size;
    rows += r.new_tokens;
  }
  check.range("pages of all requests together", pages, 0, max_pages_of_batch);
  check.range("new tokens of all requests together", rows, 0, max_pages_of_batch);
}

void write_requests(const Problem& p, std::ostream& os) {
  constexpr std::size_t shown = 8;
  for (std::size_t i = 0; i < std::min(shown, p.requests.size()); ++i) {
    const Request& r = p.requests[i];
    os << (i ? ", " : "") << r.committed << '+' << r.new_tokens;
    if (!r.live) os << " padded";
    if (!r.tree_parent.empty()) os << " tree";
    if (r.shared_prefix) os << " shares " << r.shared_prefix;
    if (r.encoder_tokens) os << " encoder " << r.encoder_tokens;
  }
  if (p.requests.size() > shown) os << ", ...";
}

}  // namespace

std::string_view name(Mode mode) { return mode_names[static_cast<std::size_t>(mode)]; }
std::string_view name(Path path) { return path_names[static_cast<std::size_t>(path)]; }
std::string_view name(Placement placement) {
  return placement_names[static_cast<std::size_t>(placement)];
}
std::optional<Mode> mode_from_name(std::string_view text) {
  return from_name<Mode>(mode_names, text);
}
std::optional<Path> path_from_name(std::string_view text) {
  return from_name<Path>(path_names, text);
}
std::optional<Placement> placement_from_name(std::string_view text) {
  return from_name<Placement>(placement_names, text);
}

std::int64_t Problem::total_new_tokens() const {
  std::int64_t total = 0;
  for (const Request& r : requests) total += r.new_tokens;
  return total;
}

std::int64_t Problem::max_new_tokens() const {
  std::int64_t longest = 0;
  for (const Request& r : requests) longest = std::max(longest, r.new_tokens);
  return longest;
}

std::int64_t Problem::max_kv_len() const {
  std::int64_t longest = 0;
  for (const Request& r : requests) longest = std::max(longest, r.kv_len());
  return longest;
}

std::optional<std::string> problem_error(const Problem& p) {
  Checker check;
  check_model(p.model, check);
  check.range("pool.page_size", p.pool.page_size, 1, max_page_size);
  check.range("pool.num_pages", p.pool.num_pages, 1, max_pool_bytes / max_page_size);
  check.range("context_len", p.context_len, 0, max_tokens);
  check.range("topk", p.topk, 1, max_batch);
  check.range("draft_step", p.draft_step, 0, max_batch);
  if (p.num_draft_tokens) check.range("num_draft_tokens", *p.num_draft_tokens, 0, max_batch);
  if (check.failed()) return check.error();
  check_strides(p, p.pool.k, "pool.k", p.model.head_dim, check);
  check_strides(p, p.pool.v, "pool.v", p.model.v_head_dim, check);
  if (!check.failed()) check_batch(p, check);
  if (!check.failed()) check_slots(p, check);
  if (!check.failed() && p.pool.slots.empty()) {
    check.range("pages the batch needs", pages_needed(p), 0, p.pool.num_pages);
  }
  return check.error();
}

std::string describe(const Problem& p) {
  std::ostringstream os;
  const Model& m = p.model;
  os << name(p.mode) << ' ' << p.requests.size() << " req " << m.num_q_heads << ':'
     << m.num_kv_heads << " D" << m.head_dim;
  if (m.v_head_dim != m.head_dim) os << '/' << m.v_head_dim;
  os << ' ' << name(m.kv_dtype);
  if (m.q_dtype != m.kv_dtype) os << " (q " << name(m.q_dtype) << ')';
  os << " page " << p.pool.page_size << " kv [";
  write_requests(p, os);
  os << ']';
  if (m.window) os << " window " << *m.window;
  if (m.softcap > 0) os << " softcap " << m.softcap;
  if (m.sinks) os << " sinks";
  if (m.mla) os << " mla";
  if (m.cross_attention) os << " cross";
  if (p.path != Path::eager) os << ' ' << name(p.path);
  return os.str();
}

}  // namespace attest
