#include "contracts/graph_rules.hpp"

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "contracts/byte_overlap.hpp"
#include "contracts/call_fields.hpp"
#include "contracts/rules.hpp"
#include "contracts/rules/finding_text.hpp"
#include "contracts/rules/row_judgement.hpp"

namespace attest {
namespace {

enum class Argument { scalar, tensor };

/// One argument that a replay says otherwise than its capture.
struct Difference {
  Argument argument;
  Severity severity;
  std::string where, captured, replayed;
};

std::string text_of(std::int64_t value) { return std::to_string(value); }
std::string text_of(double value) { return number_text(value); }
std::string text_of(bool value) { return value ? "true" : "false"; }
std::string text_of(const std::string& value) { return value; }
std::string text_of(const std::array<std::int64_t, 2>& pair) {
  return "(" + text_of(pair[0]) + ", " + text_of(pair[1]) + ")";
}

/// A label that is an address means the same in every call; others name storages of one call.
bool is_address(const std::string& storage) { return storage.starts_with("0x"); }

template <class T>
constexpr bool is_optional = false;
template <class T>
constexpr bool is_optional<std::optional<T>> = true;

/// Collects what two calls of one signature say otherwise.
class Comparison {
 public:
  template <class Member>
  void field(std::string_view key, const Member& captured, const Member& replayed) {
    if constexpr (std::is_same_v<Member, std::optional<Launch>>) {
      return;  // not an argument
    } else if constexpr (is_optional<Member>) {
      if (captured && replayed) return field(key, *captured, *replayed);
      if (captured.has_value() == replayed.has_value()) return;
      add(argument_of<typename Member::value_type>, Severity::wrong, std::string(key),
          captured ? "given" : "absent", replayed ? "given" : "absent");
    } else if constexpr (std::is_same_v<Member, IntArray>) {
      tensor(key, captured.meta, replayed.meta);
    } else if constexpr (std::is_same_v<Member, TensorMeta>) {
      tensor(key, captured, replayed);
    } else if (captured != replayed) {
      add(Argument::scalar, Severity::policy, std::string(key), text_of(captured),
          text_of(replayed));
    }
  }
  std::vector<Difference> take() && { return std::move(differences_); }

 private:
  template <class T>
  static constexpr Argument argument_of =
      std::is_same_v<T, TensorMeta> || std::is_same_v<T, IntArray> ? Argument::tensor
                                                                   : Argument::scalar;

  void add(Argument argument, Severity severity, std::string where, std::string captured,
           std::string replayed) {
    differences_.push_back(
        {argument, severity, std::move(where), std::move(captured), std::move(replayed)});
  }

  void tensor(std::string_view key, const TensorMeta& captured, const TensorMeta& replayed) {
    const std::string name(key);
    if (captured.dtype != replayed.dtype) {
      add(Argument::tensor, Severity::wrong, name + ".dtype",
          std::string(attest::name(captured.dtype)), std::string(attest::name(replayed.dtype)));
    }
    if (captured.shape.size() != replayed.shape.size()) return;
    // A view may grow inside the buffer that was captured.
    const auto size = static_cast<std::int64_t>(size_bytes(captured.dtype));
    const std::int64_t held = captured.storage_bytes / size - captured.storage_offset;
    if (spanned_elements(replayed) > held) {
      add(Argument::tensor, Severity::fault, name, text_of(held) + " elements or less",
          text_of(spanned_elements(replayed)) + " elements");
    }
    for (std::size_t d = 0; d < captured.shape.size(); ++d) {
      if (replayed.size(d) <= 1 || replayed.stride(d) == captured.stride(d)) continue;
      add(Argument::tensor, Severity::wrong, name + ".strides[" + std::to_string(d) + "]",
          text_of(captured.stride(d)), text_of(replayed.stride(d)));
    }
    if (!is_address(captured.storage) || !is_address(replayed.storage)) return;
    if (captured.storage == replayed.storage && captured.storage_offset == replayed.storage_offset)
      return;
    add(Argument::tensor, Severity::wrong, name, place(captured), place(replayed));
  }

  static std::string place(const TensorMeta& tensor) {
    return "element " + text_of(tensor.storage_offset) + " from " + tensor.storage;
  }

  std::vector<Difference> differences_;
};

std::vector<Difference> differences(const Call& captured, const Call& replayed) {
  Comparison comparison;
  std::visit(
      [&](const auto& a) {
        using CallType = std::decay_t<decltype(a)>;
        const CallType& b = std::get<CallType>(replayed);
        const auto each = [&](const auto&... f) {
          (comparison.field(f.key, a.*(f.member), b.*(f.member)), ...);
        };
        std::apply(each, call_fields<CallType>);
      },
      captured);
  return std::move(comparison).take();
}

bool may_be_one_graph(const SiteCall& capture, const SiteCall& replay) {
  const Problem &a = capture.problem, &b = replay.problem;
  return capture.call.index() == replay.call.index() && a.path == Path::capture &&
         a.mode == b.mode && a.pool.page_size == b.pool.page_size &&
         a.pool.num_pages == b.pool.num_pages && a.requests.size() == b.requests.size() &&
         a.total_new_tokens() == b.total_new_tokens();
}

const SiteCall* capture_of(const SiteCall& replay, std::span<const SiteCall> calls) {
  const SiteCall* best = nullptr;
  std::size_t fewest = 0;
  for (const SiteCall& capture : calls) {
    if (!may_be_one_graph(capture, replay)) continue;
    const std::size_t count = differences(capture.call, replay.call).size();
    if (best != nullptr && count >= fewest) continue;
    best = &capture;
    fewest = count;
  }
  return best;
}

using EachPair = std::function<void(const SiteCall& capture, const SiteCall& replay)>;

void for_each_pair(std::span<const SiteCall> calls, const EachPair& each) {
  for (const SiteCall& replay : calls) {
    if (replay.problem.path != Path::replay) continue;
    if (const SiteCall* const capture = capture_of(replay, calls)) each(*capture, replay);
  }
}

void report_differences(std::span<const SiteCall> calls, Argument argument, Report& report) {
  for_each_pair(calls, [&](const SiteCall& capture, const SiteCall& replay) {
    for (const Difference& d : differences(capture.call, replay.call)) {
      if (d.argument != argument) continue;
      report.add(d.severity, d.where + " of " + replay.name, d.replayed,
                 d.captured + ", as " + capture.name + " has it");
    }
  });
}

// What a launch keeps of the captured argument: all of a scalar or a tensor; of an array how it is
// read, its entries being the replay's.
template <class T>
void freeze(T& replayed, const T& captured) {
  replayed = captured;
}
void freeze(IntArray& replayed, const IntArray& captured) {
  if (replayed.meta.shape.size() != captured.meta.shape.size()) return;
  const std::vector<std::int64_t> shape = replayed.meta.shape;
  replayed.meta = captured.meta;
  replayed.meta.shape = shape;
}
void freeze(std::optional<IntArray>& replayed, const std::optional<IntArray>& captured) {
  if (replayed && captured) return freeze(*replayed, *captured);
  replayed = captured;
}

Call frozen(const Call& captured, const Call& replayed) {
  Call call = replayed;
  std::visit(
      [&](auto& b) {
        using CallType = std::decay_t<decltype(b)>;
        const CallType& a = std::get<CallType>(captured);
        const auto each = [&](const auto&... f) { (freeze(b.*(f.member), a.*(f.member)), ...); };
        std::apply(each, call_fields<CallType>);
      },
      call);
  return call;
}

}  // namespace

void graph_scalars_are_the_captured(std::span<const SiteCall> calls, Report& report) {
  report_differences(calls, Argument::scalar, report);
}

void graph_tensors_are_the_captured(std::span<const SiteCall> calls, Report& report) {
  report_differences(calls, Argument::tensor, report);
}

void graph_serves_the_replay(std::span<const SiteCall> calls, Report& report) {
  for_each_pair(calls, [&](const SiteCall& capture, const SiteCall& replay) {
    const SlotMap slots = make_slot_map(replay.problem);
    const Truth truth{replay.problem, slots};
    const Report alone = check(replay.call, truth);
    for (const Finding& f : check(frozen(capture.call, replay.call), truth).findings()) {
      // What is wrong with the replay's own record is said there.
      if (!rejects(f.severity) || alone.found(f.rule)) continue;
      report.add(f.severity, f.where + " of " + replay.name, f.got + " since " + capture.name,
                 f.expected + " (" + f.rule + ")");
    }
  });
}

}  // namespace attest
