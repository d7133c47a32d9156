#include "contracts/graph_rules.hpp"

#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "contracts/call_fields.hpp"
#include "contracts/rules.hpp"

namespace attest {
namespace {

std::string of_replay(const GraphPair& pair) { return " of replay " + pair.replay->name; }

void report_differences(const LayerCalls& calls, bool tensors, Report& report) {
  for (const GraphPair& pair : calls.graphs()) {
    for (const GraphDifference& d : pair.differences) {
      if (d.is_tensor != tensors) continue;
      report.add(d.severity, d.where + of_replay(pair), d.replayed,
                 d.captured + ", as capture " + pair.capture->name + " has it");
    }
  }
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

void graph_scalars_are_the_captured(const LayerCalls& calls, Report& report) {
  report_differences(calls, /*tensors=*/false, report);
}

void graph_tensors_are_the_captured(const LayerCalls& calls, Report& report) {
  report_differences(calls, /*tensors=*/true, report);
}

void graph_serves_the_replay(const LayerCalls& calls, Report& report) {
  for (const GraphPair& pair : calls.graphs()) {
    if (calls.stopped()) return;
    if (pair.capture == nullptr) continue;
    const SiteCall& replay = *pair.replay;
    const SlotMap slots = make_slot_map(replay.problem);
    const Truth truth{replay.problem, slots};
    const Report alone = check(replay.call, truth);
    for (const Finding& f : check(frozen(pair.capture->call, replay.call), truth).findings()) {
      // What is wrong with the replay's own record is said there.
      if (!rejects(f.severity) || alone.found(f.rule)) continue;
      report.add(f.severity, f.where + of_replay(pair),
                 f.got + ", frozen by capture " + pair.capture->name,
                 f.expected + " (" + f.rule + ")");
    }
  }
}

}  // namespace attest
