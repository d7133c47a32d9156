#include <algorithm>
#include <optional>

#include "property_tests/smaller_parts.hpp"

namespace attest {
namespace {

/// Up to here requests are changed one by one.
constexpr std::size_t most_single = 16;

/// Requests that live and die together: the branches of one draft decode, else one request.
std::size_t group_size(const Problem& problem) {
  return problem.mode == Mode::draft_decode ? static_cast<std::size_t>(problem.topk) : 1;
}

void erase_groups(Problem& problem, std::size_t first, std::size_t count) {
  const auto from = static_cast<std::ptrdiff_t>(first * group_size(problem));
  const auto to = static_cast<std::ptrdiff_t>((first + count) * group_size(problem));
  problem.requests.erase(problem.requests.begin() + from, problem.requests.begin() + to);
  if (problem.pool.slots.empty()) return;
  problem.pool.slots.erase(problem.pool.slots.begin() + from, problem.pool.slots.begin() + to);
}

/// Sets the committed length and what hangs on it. Listed slots end there: a placement takes over.
void set_committed(Problem& problem, std::size_t i, std::int64_t committed) {
  Request& request = problem.requests[i];
  request.committed = committed;
  const bool branch = problem.mode == Mode::draft_decode && request.shared_prefix > 0;
  request.shared_prefix = branch ? std::max<std::int64_t>(0, committed - problem.draft_step)
                                 : std::min(request.shared_prefix, committed);
  problem.pool.slots.clear();
}

void set_new_tokens(Problem& problem, std::size_t i, std::int64_t tokens) {
  Request& request = problem.requests[i];
  request.new_tokens = tokens;
  if (!request.tree_parent.empty()) request.tree_parent.resize(static_cast<std::size_t>(tokens));
  problem.pool.slots.clear();
}

/// 0, a half, one less: the big steps first.
std::vector<std::int64_t> steps_down(std::int64_t value, std::int64_t least) {
  std::vector<std::int64_t> steps;
  for (const std::int64_t next : {least, value / 2, value - 8, value - 1}) {
    const bool is_new = std::find(steps.begin(), steps.end(), next) == steps.end();
    if (next >= least && next < value && is_new) steps.push_back(next);
  }
  return steps;
}

}  // namespace

void propose_fewer_requests(Proposals& proposals) {
  const Problem& from = proposals.from().problem;
  proposals.add([](Problem& p) {
    std::erase_if(p.requests, [](const Request& r) { return !r.live; });
    p.pool.slots.clear();
  });
  const std::size_t groups = from.requests.size() / group_size(from);
  if (groups > 3) {
    proposals.add([&](Problem& p) { erase_groups(p, groups / 2, groups - groups / 2); });
    proposals.add([&](Problem& p) { erase_groups(p, 0, groups / 2); });
  }
  // Large batches lose an eighth at a time: each candidate costs a lowering.
  const std::size_t step = groups > most_single ? groups / 8 : 1;
  for (std::size_t g = 0; groups > 1 && g + step <= groups; g += step) {
    proposals.add([&](Problem& p) { erase_groups(p, g, step); });
  }
  // One branch of each: plain drafting.
  proposals.add([](Problem& p) {
    if (p.mode != Mode::draft_decode || p.topk == 1) return;
    std::vector<Request> first;
    for (std::size_t i = 0; i < p.requests.size(); i += static_cast<std::size_t>(p.topk)) {
      first.push_back(p.requests[i]);
      first.back().shared_prefix = 0;
    }
    p.requests = std::move(first);
    p.topk = 1;
    p.pool.slots.clear();
  });
}

void propose_shorter_lengths(Proposals& proposals) {
  const Problem& from = proposals.from().problem;
  std::int64_t longest = 0;
  for (const Request& r : from.requests) longest = std::max(longest, r.committed);
  for (const std::int64_t limit : steps_down(longest, 0)) {
    proposals.add([limit](Problem& p) {
      for (std::size_t i = 0; i < p.requests.size(); ++i) {
        set_committed(p, i, std::min(p.requests[i].committed, limit));
      }
    });
  }
  const std::size_t group = group_size(from);
  const bool one_by_one = from.requests.size() / group <= most_single;
  for (std::size_t g = 0; one_by_one && g * group < from.requests.size(); ++g) {
    for (const std::int64_t next : steps_down(from.requests[g * group].committed, 0)) {
      proposals.add([=](Problem& p) {
        for (std::size_t t = 0; t < group; ++t) set_committed(p, g * group + t, next);
      });
    }
  }
  proposals.add([](Problem& p) {
    for (std::size_t i = 0; i < p.requests.size(); ++i) {
      set_committed(p, i, std::max<std::int64_t>(0, p.requests[i].committed - p.draft_step));
    }
    p.draft_step = 0;
    for (Request& r : p.requests) {
      if (r.shared_prefix > 0) r.shared_prefix = r.committed;
    }
  });
}

void propose_shorter_windows(Proposals& proposals) {
  const std::optional<std::int64_t> window = proposals.from().problem.model.window;
  if (!window) return;
  // The window's edge stays where it is among the keys: a fault there needs both to shrink.
  for (const std::int64_t next : steps_down(*window, 1)) {
    proposals.add([=](Problem& p) {
      p.model.window = next;
      for (std::size_t i = 0; i < p.requests.size(); ++i) {
        const Request request = p.requests[i];
        const std::int64_t cut = *window - next;
        const std::int64_t committed = std::max<std::int64_t>(0, request.committed - cut);
        const std::int64_t rest = cut - (request.committed - committed);
        set_committed(p, i, committed);
        set_new_tokens(
            p, i,
            std::max(std::min<std::int64_t>(1, request.new_tokens), request.new_tokens - rest));
      }
    });
  }
}

void propose_fewer_new_tokens(Proposals& proposals) {
  const Problem& from = proposals.from().problem;
  // All at once, for kernels that want one length; the server argument goes along.
  for (const std::int64_t limit : steps_down(from.max_new_tokens(), 1)) {
    proposals.add([limit](Problem& p) {
      for (std::size_t i = 0; i < p.requests.size(); ++i) {
        set_new_tokens(p, i, std::min(p.requests[i].new_tokens, limit));
      }
      if (p.num_draft_tokens && p.model.mla) p.num_draft_tokens = limit;
    });
  }
  const bool one_by_one = from.requests.size() <= most_single;
  for (std::size_t i = 0; one_by_one && i < from.requests.size(); ++i) {
    for (const std::int64_t next : steps_down(from.requests[i].new_tokens, 1)) {
      proposals.add([=](Problem& p) { set_new_tokens(p, i, next); });
    }
  }
}

}  // namespace attest
