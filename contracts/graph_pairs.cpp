#include "contracts/graph_pairs.hpp"

#include <array>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <type_traits>
#include <utility>

#include "contracts/byte_overlap.hpp"
#include "contracts/call_fields.hpp"
#include "contracts/rules/row_judgement.hpp"
#include "contracts/step_rules.hpp"
#include "contracts/storage_label.hpp"
#include "contracts/work_lists.hpp"

namespace attest {
namespace {

std::string text_of(std::int64_t value) { return std::to_string(value); }
std::string text_of(double value) { return number_text(value); }
std::string text_of(bool value) { return value ? "true" : "false"; }
std::string text_of(const std::string& value) { return value; }
std::string text_of(const std::array<std::int64_t, 2>& pair) {
  return "(" + text_of(pair[0]) + ", " + text_of(pair[1]) + ")";
}

template <class T>
constexpr bool is_optional = false;
template <class T>
constexpr bool is_optional<std::optional<T>> = true;

/// A record has work lists only where somebody was seen to fill them: one without says nothing.
template <class Member>
bool is_unseen_work_list(std::string_view key, const Member& a, const Member& b) {
  if constexpr (std::is_same_v<Member, std::optional<IntArray>>) {
    return is_work_list(key) && a.has_value() != b.has_value();
  } else {
    return false;
  }
}

/// Calls f(key, member of a, member of b) for every argument; launches and plans are none.
template <class CallType, class F>
void for_each_argument(const CallType& a, const CallType& b, F f) {
  const auto one = [&](const auto& field) {
    using Member = std::decay_t<decltype(a.*(field.member))>;
    if (is_unseen_work_list(field.key, a.*(field.member), b.*(field.member))) return;
    if constexpr (!std::is_same_v<Member, std::optional<Launch>> &&
                  !std::is_same_v<Member, std::optional<WorkPlan>>) {
      f(field.key, a.*(field.member), b.*(field.member));
    }
  };
  std::apply([&](const auto&... fields) { (one(fields), ...); }, call_fields<CallType>);
}

/// Where a tensor lies, of all calls: bytes from the address that its label is, or nothing.
std::optional<std::uint64_t> place_of(const TensorMeta& tensor) {
  const std::optional<std::uint64_t> base = number_of_label(tensor.storage);
  if (!base || !is_address(tensor.storage)) return std::nullopt;
  const auto offset = static_cast<std::uint64_t>(tensor.storage_offset) *
                      static_cast<std::uint64_t>(size_bytes(tensor.dtype));
  return *base + offset;
}

/// Collects what two calls of one signature say otherwise.
class Comparison {
 public:
  template <class Member>
  void field(std::string_view key, const Member& captured, const Member& replayed) {
    if constexpr (is_optional<Member>) {
      if (captured && replayed) return field(key, *captured, *replayed);
      if (captured.has_value() == replayed.has_value()) return;
      absence(key, captured, replayed);
    } else if constexpr (std::is_same_v<Member, IntArray>) {
      tensor(key, captured.meta, replayed.meta);
    } else if constexpr (std::is_same_v<Member, TensorMeta>) {
      tensor(key, captured, replayed);
    } else if (captured != replayed) {
      add(/*tensor=*/false, Severity::policy, std::string(key), text_of(captured),
          text_of(replayed));
    }
  }
  std::vector<GraphDifference> take() && { return std::move(differences_); }

 private:
  /// A tensor is in a launch or not; a scalar that is absent has its default there.
  template <class T>
  void absence(std::string_view key, const std::optional<T>& captured,
               const std::optional<T>& replayed) {
    const auto said = [](const std::optional<T>& value) -> std::string {
      if (!value) return "absent";
      if constexpr (is_tensor<T>) {
        return "given";
      } else {
        return text_of(*value);
      }
    };
    add(is_tensor<T>, is_tensor<T> ? Severity::wrong : Severity::policy, std::string(key),
        said(captured), said(replayed));
  }

  template <class T>
  static constexpr bool is_tensor = std::is_same_v<T, TensorMeta> || std::is_same_v<T, IntArray>;

  void add(bool tensor, Severity severity, std::string where, std::string captured,
           std::string replayed) {
    differences_.push_back(
        {tensor, severity, std::move(where), std::move(captured), std::move(replayed)});
  }

  void tensor(std::string_view key, const TensorMeta& captured, const TensorMeta& replayed) {
    const std::string name(key);
    if (captured.dtype != replayed.dtype) {
      add(true, Severity::wrong, name + ".dtype", std::string(attest::name(captured.dtype)),
          std::string(attest::name(replayed.dtype)));
    }
    if (captured.shape.size() != replayed.shape.size()) return;
    // A view may grow inside the buffer that was captured.
    const auto size = static_cast<std::int64_t>(size_bytes(captured.dtype));
    const std::int64_t held = captured.storage_bytes / size - captured.storage_offset;
    if (spanned_elements(replayed) > held) {
      add(true, Severity::fault, name, text_of(held) + " elements or less",
          text_of(spanned_elements(replayed)) + " elements");
    }
    for (std::size_t d = 0; d < captured.shape.size(); ++d) {
      if (replayed.size(d) <= 1 || replayed.stride(d) == captured.stride(d)) continue;
      add(true, Severity::wrong, name + ".strides[" + std::to_string(d) + "]",
          text_of(captured.stride(d)), text_of(replayed.stride(d)));
    }
    const auto at = place_of(captured), now_at = place_of(replayed);
    if (!at || !now_at || at == now_at) return;
    add(true, Severity::wrong, name, place_text(captured), place_text(replayed));
  }

  static std::string place_text(const TensorMeta& tensor) {
    return "element " + text_of(tensor.storage_offset) + " from " + tensor.storage;
  }

  std::vector<GraphDifference> differences_;
};

std::vector<GraphDifference> differences(const Call& captured, const Call& replayed) {
  Comparison comparison;
  std::visit(
      [&](const auto& a) {
        for_each_argument(a, std::get<std::decay_t<decltype(a)>>(replayed),
                          [&](std::string_view key, const auto& of_a, const auto& of_b) {
                            comparison.field(key, of_a, of_b);
                          });
      },
      captured);
  return std::move(comparison).take();
}

/// What a call says, as text to look it up by.
class Said {
 public:
  /// \param layouts  shapes, strides and sizes too, which a replay's may differ from
  explicit Said(bool layouts) : layouts_(layouts) {}

  template <class Member>
  void field(const Member& member) {
    if constexpr (is_optional<Member>) {
      if (member) return field(*member);
      text_ += '-';
    } else if constexpr (std::is_same_v<Member, IntArray>) {
      tensor(member.meta);
    } else if constexpr (std::is_same_v<Member, TensorMeta>) {
      tensor(member);
    } else {
      text_ += text_of(member);
    }
    text_ += ';';
  }
  std::string take() && { return std::move(text_); }

 private:
  void tensor(const TensorMeta& t) {
    text_ += name(t.dtype);
    if (const auto place = place_of(t)) text_ += "@" + std::to_string(*place);
    if (!layouts_) return;
    for (const auto* const list : {&t.shape, &t.strides}) {
      for (const std::int64_t number : *list) text_ += "," + std::to_string(number);
      text_ += '/';
    }
    text_ += std::to_string(t.storage_offset) + "/" + std::to_string(t.storage_bytes);
  }

  bool layouts_;
  std::string text_;
};

std::string said(const Call& call, bool layouts) {
  Said text(layouts);
  std::visit(
      [&](const auto& c) {
        for_each_argument(
            c, c, [&](std::string_view, const auto& member, const auto&) { text.field(member); });
      },
      call);
  return std::move(text).take();
}

/// Calls that can be one graph's: kernel, mode, pool, and the numbers of requests and rows.
using GraphKey =
    std::tuple<std::size_t, Mode, std::int64_t, std::int64_t, std::size_t, std::int64_t>;
GraphKey graph_key(const SiteCall& site) {
  const Problem& p = site.problem;
  return {site.call.index(),   p.mode, p.pool.page_size, p.pool.num_pages, p.requests.size(),
          p.total_new_tokens()};
}

/// The captures of one key.
class Captures {
 public:
  void add(const SiteCall& capture) {
    if (!seen_.insert(said(capture.call, /*layouts=*/true)).second) return;
    different_.push_back(&capture);
    by_place_[said(capture.call, /*layouts=*/false)].push_back(&capture);
  }

  /// The capture that the replay differs from least, the first of several.
  GraphPair pair_with(const SiteCall& replay, const std::atomic<bool>* stop,
                      std::int64_t& compared) const {
    GraphPair best{.replay = &replay};
    // One with the same scalars and addresses is nearly always right.
    const auto same = by_place_.find(said(replay.call, /*layouts=*/false));
    if (same != by_place_.end()) look(same->second, stop, compared, best);
    if (best.capture == nullptr || !best.differences.empty()) {
      look(different_, stop, compared, best);
    }
    return best;
  }

 private:
  static void look(const std::vector<const SiteCall*>& captures, const std::atomic<bool>* stop,
                   std::int64_t& compared, GraphPair& best) {
    for (const SiteCall* const capture : captures) {
      if (stop != nullptr && *stop) return;
      std::vector<GraphDifference> found = differences(capture->call, best.replay->call);
      ++compared;
      if (best.capture != nullptr && found.size() >= best.differences.size()) continue;
      best.capture = capture;
      best.differences = std::move(found);
      if (best.differences.empty()) return;
    }
  }

  std::vector<const SiteCall*> different_;
  std::map<std::string, std::vector<const SiteCall*>> by_place_;
  std::set<std::string> seen_;
};

}  // namespace

std::vector<GraphPair> graph_pairs(std::span<const SiteCall> calls, const std::atomic<bool>* stop,
                                   std::int64_t* compared) {
  std::map<GraphKey, Captures> captures;
  for (const SiteCall& site : calls) {
    if (stop != nullptr && *stop) return {};
    if (site.problem.path == Path::capture) captures[graph_key(site)].add(site);
  }
  std::vector<GraphPair> pairs;
  std::int64_t count = 0;
  for (const SiteCall& site : calls) {
    if (stop != nullptr && *stop) break;
    if (site.problem.path != Path::replay) continue;
    const auto at = captures.find(graph_key(site));
    pairs.push_back(at == captures.end() ? GraphPair{.replay = &site}
                                         : at->second.pair_with(site, stop, count));
  }
  if (compared != nullptr) *compared = count;
  return pairs;
}

}  // namespace attest
