#include "contracts/step_rules.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "contracts/graph_rules.hpp"
#include "contracts/rules/row_judgement.hpp"
#include "contracts/signatures.hpp"

namespace attest {
namespace {

/// What the kernel will do with its window argument: keys a row sees at most, 0 = all. Nothing for
/// a kernel without the argument.
std::optional<std::int64_t> window_of(const Call& call) {
  const auto keys_of_distance = [](std::int64_t left) { return left < 0 ? 0 : left + 1; };
  if (const auto* c = std::get_if<UnifiedCall>(&call)) return keys_of_distance(c->window_size[0]);
  if (const auto* c = std::get_if<BatchPrefillCall>(&call)) {
    return keys_of_distance(c->window_size[0]);
  }
  if (const auto* c = std::get_if<LegacyExtendCall>(&call)) {
    return keys_of_distance(c->sliding_window_size);
  }
  if (const auto* c = std::get_if<ExtendCall>(&call)) {
    return std::max<std::int64_t>(0, c->sliding_window_size);
  }
  if (const auto* c = std::get_if<VllmCpuCall>(&call)) {
    return std::max<std::int64_t>(0, c->sliding_window);
  }
  if (const auto* c = std::get_if<DecodeCall>(&call)) {
    return std::max<std::int64_t>(0, c->sliding_window_size);
  }
  return std::nullopt;
}

std::string window_text(std::int64_t keys) {
  return keys == 0 ? "no window" : std::to_string(keys) + " keys";
}

Attended meaning_of(const SiteCall& site) {
  return read(site.call, site.problem, make_slot_map(site.problem));
}

bool same(double a, double b) {
  return a == b || std::abs(a - b) <= 1e-6 * std::max(std::abs(a), std::abs(b));
}

bool same(std::int64_t a, std::int64_t b) { return a == b; }
bool same(Dtype a, Dtype b) { return a == b; }

/// What each of some calls says, and who say the same.
template <class T>
class Votes {
 public:
  void add(const SiteCall& site, T value) {
    const auto same_value = [&](const Group& group) { return same(group.value, value); };
    auto group = std::ranges::find_if(groups_, same_value);
    if (group == groups_.end()) group = groups_.insert(groups_.end(), {&site, value, 0});
    ++group->calls;
    votes_.push_back({&site, value});
  }
  /// Calls f(site, its value, the right value, who has that) for each that says otherwise. Right is
  /// what the layer wants where a call says so, else what most say, of equally many the first.
  template <class F>
  void for_each_dissenter(const std::optional<T>& layers, F f) const {
    if (groups_.size() < 2) return;
    auto right = std::ranges::max_element(groups_, {}, &Group::calls);
    const auto wanted = std::ranges::find_if(
        groups_, [&](const Group& group) { return layers && same(group.value, *layers); });
    if (wanted != groups_.end()) right = wanted;
    std::string holders = right == wanted ? ", the layer's" : "";
    holders += ", as " + right->first->name;
    holders += right->calls == 1 ? " has it"
                                 : " and " + std::to_string(right->calls - 1) + " more have it";
    for (const auto& [site, value] : votes_) {
      if (!same(value, right->value)) f(*site, value, right->value, holders);
    }
  }

 private:
  struct Group {
    const SiteCall* first;
    T value;
    std::int64_t calls;
  };
  std::vector<Group> groups_;
  std::vector<std::pair<const SiteCall*, T>> votes_;
};

/// Every site whose number is not the right one.
void expect_equal(const LayerCalls& calls, std::string_view what, double layers,
                  const std::function<double(const Attended&)>& number, Report& report) {
  Votes<double> votes;
  for (const SiteCall& site : calls.all()) {
    if (calls.stopped()) return;
    votes.add(site, number(meaning_of(site)));
  }
  votes.for_each_dissenter(
      layers, [&](const SiteCall& site, double got, double wanted, const std::string& holders) {
        report.add(std::string(what) + " of " + site.name, number_text(got),
                   number_text(wanted) + holders);
      });
}

void scale_agrees(const LayerCalls& calls, Report& report) {
  const double layers = calls.all().front().problem.model.softmax_scale;
  expect_equal(calls, "the scale", layers, [](const Attended& a) { return a.scale; }, report);
}

void softcap_agrees(const LayerCalls& calls, Report& report) {
  const double layers = std::max(0.0, calls.all().front().problem.model.softcap);
  expect_equal(
      calls, "the logit cap", layers, [](const Attended& a) { return std::max(0.0, a.softcap); },
      report);
}

void window_agrees(const LayerCalls& calls, Report& report) {
  Votes<std::int64_t> votes;
  for (const SiteCall& site : calls.all()) {
    if (const std::optional<std::int64_t> keys = window_of(site.call)) votes.add(site, *keys);
  }
  const std::int64_t layers = calls.all().front().problem.model.window.value_or(0);
  votes.for_each_dissenter(layers, [&](const SiteCall& site, std::int64_t got, std::int64_t wanted,
                                       const std::string& holders) {
    // Which of the two conventions the model wants is an open question (docs/findings).
    const bool one_key = wanted > 0 && got > 0 && std::abs(got - wanted) == 1;
    report.add(one_key ? Severity::policy : Severity::wrong, "the window of " + site.name,
               window_text(got), window_text(wanted) + holders);
  });
}

/// The array whose dtype a kernel may take into its offsets.
const IntArray* lengths_of(const Call& call) {
  if (const auto* c = std::get_if<UnifiedCall>(&call)) return &c->seqused_k;
  if (const auto* c = std::get_if<ExtendCall>(&call)) return &c->req_to_token;
  if (const auto* c = std::get_if<DecodeCall>(&call)) return &c->req_to_token;
  if (const auto* c = std::get_if<LegacyExtendCall>(&call)) return &c->kv_indices;
  return nullptr;
}

void length_dtypes_agree(const LayerCalls& calls, Report& report) {
  std::map<Signature, Votes<Dtype>> votes;
  for (const SiteCall& site : calls.all()) {
    const IntArray* const array = lengths_of(site.call);
    if (array != nullptr) votes[signature_of(site.call)].add(site, array->meta.dtype);
  }
  for (const auto& [signature, of] : votes) {
    of.for_each_dissenter(std::nullopt, [&](const SiteCall& site, Dtype got, Dtype wanted,
                                            const std::string& holders) {
      report.add("the index dtype of " + site.name, std::string(name(got)),
                 std::string(name(wanted)) + holders);
    });
  }
}

/// Visible keys of a live request's row, by (which of the live requests, token).
using LiveRows = std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t>;

LiveRows live_rows(const Attended& meaning, const Problem& problem) {
  std::vector<std::int64_t> ordinal;
  ordinal.reserve(problem.requests.size());
  std::int64_t live = 0;
  for (const Request& r : problem.requests) ordinal.push_back(r.live ? live++ : -1);
  LiveRows rows;
  for (const AttendedRow& row : meaning.rows) {
    if (row.request < 0) continue;
    const std::int64_t at = ordinal[static_cast<std::size_t>(row.request)];
    if (at < 0) continue;
    std::int64_t& keys = rows[{at, row.token}];
    for (const KeyRun& run : row.keys) keys += run.count;
  }
  return rows;
}

/// What the scheduler said of the step, padding left out: equal for an eager run and a replay.
using Schedule = std::vector<std::pair<std::int64_t, std::int64_t>>;
Schedule schedule_of(const Problem& p) {
  Schedule schedule;
  for (const Request& r : p.requests) {
    if (r.live) schedule.push_back({r.committed, r.new_tokens});
  }
  return schedule;
}

void paths_read_alike(const LayerCalls& calls, Report& report) {
  std::map<std::pair<Mode, Schedule>, std::pair<const SiteCall*, LiveRows>> first;
  for (const SiteCall& site : calls.all()) {
    if (calls.stopped()) return;
    Schedule schedule = schedule_of(site.problem);
    if (schedule.empty()) continue;
    const LiveRows rows = live_rows(meaning_of(site), site.problem);
    const auto [at, is_first] =
        first.try_emplace({site.problem.mode, std::move(schedule)}, &site, rows);
    const auto& [before, expected] = at->second;
    if (is_first || before->problem.path == site.problem.path) continue;
    const LiveRows wanted = live_rows(attended(site.problem), site.problem);
    for (const auto& [row, keys] : expected) {
      const auto mine = rows.find(row);
      const std::int64_t got = mine == rows.end() ? 0 : mine->second;
      if (got == keys) continue;
      const auto right = wanted.find(row);
      const bool other_is_wrong = right != wanted.end() && right->second == got;
      report.add("live request " + std::to_string(row.first) + ", token " +
                     std::to_string(row.second) + " of " + (other_is_wrong ? *before : site).name,
                 std::to_string(other_is_wrong ? keys : got) + " visible keys",
                 std::to_string(other_is_wrong ? got : keys) + ", as in " +
                     (other_is_wrong ? site : *before).name);
      break;
    }
  }
}

constexpr StepRule rules[] = {
    {.id = "step.scale_agrees",
     .says = "every call of a layer scales by the same number",
     .why = "a token is then decoded with other weights than it is verified with",
     .source = "sgl-project/sglang#38754",
     .check = scale_agrees},
    {.id = "step.softcap_agrees",
     .says = "every call of a layer caps its logits alike",
     .why = "a cap on one path makes decode and verify disagree on the same token",
     .source = "sgl-project/sglang#38754; vllm-project/vllm-metal#665",
     .check = softcap_agrees},
    {.id = "step.window_agrees",
     .says = "every call of a layer sees the same number of keys, whatever its kernel counts in",
     .why = "a key at the window's edge is attended in the prompt and gone in decode; policy where "
            "one key is the difference",
     .source = "sgl-project/sglang python/sglang/srt/layers/attention/aiter_backend.py",
     .check = window_agrees},
    {.id = "step.index_dtypes_agree",
     .says = "all calls of one kernel pass the array that reaches its offsets in one dtype",
     .why = "the call site with the narrow one is the one that breaks when the cache grows",
     .source = "sgl-project/sglang#36541",
     .severity = Severity::policy,
     .check = length_dtypes_agree},
    {.id = "step.paths_read_alike",
     .says = "a step's rows see as many keys from a graph as run eagerly",
     .why = "metadata of the two paths is built by different code, and one of them drifts",
     .source = "sgl-project/sglang#34647; sgl-project/sglang#36915",
     .check = paths_read_alike},
    {.id = "step.graph_tensors_are_the_captured",
     .says = "a replay's tensors are the captured ones: address, dtype and strides, inside the "
             "captured buffer",
     .why = "a graph has them in its launches: it reads where and how it was captured, whatever "
            "the framework has at hand by then",
     .source = "sgl-project/sglang#19362; sgl-project/sglang#19807",
     .check = graph_tensors_are_the_captured},
    {.id = "step.graph_scalars_are_the_captured",
     .says = "a replay's scalars are the captured ones",
     .why = "capture and replay come from two formulas, and the graph runs with the captured "
            "value; policy where it only tunes, else step.graph_serves_the_replay says so",
     .source = "sgl-project/sglang#34647; InferenceMAX/InferenceX#2466",
     .severity = Severity::policy,
     .check = graph_scalars_are_the_captured},
    {.id = "step.graph_serves_the_replay",
     .says = "a replay's lengths and tables keep the contract with the scalars and layouts of its "
             "capture",
     .why = "partitions, windows and widths frozen at capture do not grow with the batch",
     .source = "InferenceMAX/InferenceX#2466; sgl-project/sglang#31221",
     .check = graph_serves_the_replay},
};

}  // namespace

std::span<const StepRule> step_rules() { return rules; }

std::vector<const SiteCall*> LayerCalls::without_capture() const {
  std::vector<const SiteCall*> alone;
  for (const GraphPair& pair : graphs_) {
    if (pair.capture == nullptr) alone.push_back(pair.replay);
  }
  return alone;
}

Report check_step(std::span<const SiteCall> calls) { return check_step(LayerCalls(calls)); }

Report check_step(const LayerCalls& calls) {
  Report report;
  if (calls.all().size() < 2) return report;
  for (const StepRule& rule : step_rules()) {
    if (calls.stopped()) break;
    report.begin(rule.id, rule.severity);
    rule.check(calls, report);
  }
  return report;
}

}  // namespace attest
