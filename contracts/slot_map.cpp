#include "contracts/slot_map.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <unordered_set>
#include <utility>

namespace attest {
namespace {

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// splitmix64's finaliser: a fixed, portable source of placement numbers.
std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

/// Pages numbered 0, 1, ... in the order the requests take them, before they become physical.
struct LogicalPages {
  std::vector<std::vector<std::int64_t>> text;
  std::vector<std::vector<std::int64_t>> encoder;
  std::int64_t count = 0;
  bool has_padding = false;
};

/// The content sequence of a page whose tokens all existed before this step, or -1: such pages are
/// read-only and may be shared between requests.
std::int64_t shareable_sequence(const Request& r, std::int64_t c, std::int64_t page_size) {
  const std::int64_t end = (c + 1) * page_size;
  if (end <= r.shared_prefix) return r.shared_sequence;
  const bool own = c * page_size >= r.shared_prefix && end <= r.committed;
  return own ? r.sequence : -1;
}

LogicalPages logical_pages(const Problem& p) {
  LogicalPages pages;
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> shared;
  for (const Request& r : p.requests) {
    std::vector<std::int64_t>& text = pages.text.emplace_back();
    std::vector<std::int64_t>& encoder = pages.encoder.emplace_back();
    pages.has_padding |= !r.live;
    const std::int64_t text_pages = ceil_div(r.kv_len(), p.pool.page_size);
    for (std::int64_t c = 0; r.live && c < text_pages; ++c) {
      const std::int64_t sequence = shareable_sequence(r, c, p.pool.page_size);
      if (sequence < 0) {
        text.push_back(pages.count++);
        continue;
      }
      const auto [at, inserted] = shared.try_emplace({sequence, c}, pages.count);
      if (inserted) ++pages.count;
      text.push_back(at->second);
    }
    if (!r.live) text.assign(static_cast<std::size_t>(text_pages), -1);
    const std::int64_t encoder_pages = ceil_div(r.encoder_tokens, p.pool.page_size);
    for (std::int64_t c = 0; c < encoder_pages; ++c) encoder.push_back(pages.count++);
  }
  return pages;
}

/// `count` distinct values of [first, limit), scattered by `seed`.
std::vector<std::int64_t> scatter(std::int64_t count, std::int64_t first, std::int64_t limit,
                                  std::uint64_t seed) {
  std::vector<std::int64_t> chosen;
  const std::int64_t span = limit - first;
  if (count * 2 >= span) {
    chosen.resize(static_cast<std::size_t>(span));
    std::iota(chosen.begin(), chosen.end(), first);
    for (std::size_t i = 0; i + 1 < chosen.size(); ++i) {
      const std::uint64_t left = chosen.size() - i;
      std::swap(chosen[i], chosen[i + mix(seed ^ mix(i)) % left]);
    }
    chosen.resize(static_cast<std::size_t>(count));
    return chosen;
  }
  std::unordered_set<std::int64_t> seen;
  for (std::uint64_t draw = 0; static_cast<std::int64_t>(chosen.size()) < count; ++draw) {
    const auto page =
        first + static_cast<std::int64_t>(mix(seed ^ mix(draw)) % static_cast<std::uint64_t>(span));
    if (seen.insert(page).second) chosen.push_back(page);
  }
  return chosen;
}

std::vector<std::int64_t> physical_pages(const Pool& pool, std::int64_t count, bool reserve_zero) {
  const std::int64_t first = reserve_zero ? 1 : 0;
  switch (pool.placement) {
    case Placement::sequential: {
      std::vector<std::int64_t> pages(static_cast<std::size_t>(count));
      std::iota(pages.begin(), pages.end(), first);
      return pages;
    }
    case Placement::high:
      return scatter(count, std::max(first, pool.num_pages - count), pool.num_pages, pool.seed);
    case Placement::permuted:
      break;
  }
  return scatter(count, first, pool.num_pages, pool.seed);
}

std::vector<std::int64_t> tokens_of_runs(const std::vector<SlotRun>& runs) {
  std::vector<std::int64_t> slots;
  for (const SlotRun& run : runs) {
    for (std::int64_t j = 0; j < run.count; ++j)
      slots.push_back(run.first < 0 ? -1 : run.first + j);
  }
  return slots;
}

/// Pages of listed slots when they keep pages together; evicted tokens fit any page.
bool as_pages(const std::vector<std::int64_t>& slots, std::int64_t page_size,
              std::vector<std::int64_t>& pages) {
  pages.assign(
      static_cast<std::size_t>(ceil_div(static_cast<std::int64_t>(slots.size()), page_size)), -1);
  for (std::size_t t = 0; t < slots.size(); ++t) {
    if (slots[t] < 0) continue;
    const auto token = static_cast<std::int64_t>(t);
    if (slots[t] % page_size != token % page_size) return false;
    std::int64_t& page = pages[static_cast<std::size_t>(token / page_size)];
    if (page >= 0 && page != slots[t] / page_size) return false;
    page = slots[t] / page_size;
  }
  return true;
}

SlotMap map_of_listed_slots(const Problem& p) {
  SlotMap map;
  map.page_size = p.pool.page_size;
  map.encoder_slots.resize(p.requests.size());
  std::vector<std::vector<std::int64_t>> tokens;
  for (std::size_t i = 0; i < p.requests.size(); ++i) {
    tokens.push_back(tokens_of_runs(p.pool.slots[i]));
    // Padded rows often list nothing: their slots mean nothing, slot 0 stands for them.
    tokens.back().resize(static_cast<std::size_t>(p.requests[i].kv_len()), 0);
    if (p.pool.slots[i].empty()) {
      for (std::size_t t = 0; t < tokens.back().size(); ++t) {
        tokens.back()[t] = static_cast<std::int64_t>(t) % p.pool.page_size;
      }
    }
  }
  for (const auto& slots : tokens) {
    if (!as_pages(slots, p.pool.page_size, map.pages.emplace_back())) {
      map.page_size = 1;
      map.pages = std::move(tokens);
      return map;
    }
  }
  return map;
}

}  // namespace

ContentKey content_of(const Request& request, std::int64_t position) {
  const bool shared = position >= 0 && position < request.shared_prefix;
  return {shared ? request.shared_sequence : request.sequence, position};
}

std::int64_t pages_needed(const Problem& problem) {
  const LogicalPages pages = logical_pages(problem);
  return pages.count + (pages.has_padding ? 1 : 0);
}

SlotMap make_slot_map(const Problem& problem) {
  if (!problem.pool.slots.empty()) return map_of_listed_slots(problem);
  LogicalPages logical = logical_pages(problem);
  const std::vector<std::int64_t> physical =
      physical_pages(problem.pool, logical.count, logical.has_padding);
  SlotMap map;
  map.page_size = problem.pool.page_size;
  for (std::size_t i = 0; i < problem.requests.size(); ++i) {
    for (std::int64_t& page : logical.text[i]) {
      page = page < 0 ? 0 : physical[static_cast<std::size_t>(page)];
    }
    map.pages.push_back(std::move(logical.text[i]));
    std::vector<std::int64_t>& slots = map.encoder_slots.emplace_back();
    for (std::int64_t j = 0; j < problem.requests[i].encoder_tokens; ++j) {
      const auto c = static_cast<std::size_t>(j / map.page_size);
      slots.push_back(physical[static_cast<std::size_t>(logical.encoder[i][c])] * map.page_size +
                      j % map.page_size);
    }
  }
  return map;
}

std::unordered_map<std::int64_t, ContentKey> contents_by_slot(const Problem& problem,
                                                              const SlotMap& slots) {
  std::unordered_map<std::int64_t, ContentKey> contents;
  for (std::size_t i = 0; i < problem.requests.size(); ++i) {
    const Request& r = problem.requests[i];
    if (!r.live) continue;
    for (std::int64_t t = 0; t < r.kv_len(); ++t) {
      const std::int64_t slot = slots.slot(i, t);
      if (slot >= 0) contents.try_emplace(slot, content_of(r, t));
    }
    for (std::size_t j = 0; j < slots.encoder_slots[i].size(); ++j) {
      contents.try_emplace(slots.encoder_slots[i][j],
                           ContentKey{r.sequence, -1 - static_cast<std::int64_t>(j)});
    }
  }
  return contents;
}

}  // namespace attest
