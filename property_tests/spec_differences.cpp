#include "property_tests/spec_differences.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <type_traits>

#include "contracts/call_fields.hpp"
#include "contracts/printable.hpp"
#include "contracts/rules.hpp"
#include "contracts/signatures.hpp"
#include "contracts/verdict.hpp"
#include "contracts/work_lists.hpp"
#include "fixtures/captured_check.hpp"

namespace attest {
namespace {

std::string text_of(std::int64_t value) { return std::to_string(value); }
std::string text_of(bool value) { return value ? "true" : "false"; }
std::string text_of(const std::string& value) { return value; }
std::string text_of(double value) {
  char buffer[32];
  return {buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr};
}
std::string text_of(const std::vector<std::int64_t>& numbers) {
  std::string text;
  for (const std::int64_t number : numbers) {
    text += (text.empty() ? "(" : ", ") + std::to_string(number);
  }
  return text.empty() ? "()" : text + ")";
}
std::string text_of(const std::array<std::int64_t, 2>& pair) {
  return text_of(std::vector<std::int64_t>(pair.begin(), pair.end()));
}

bool same(double a, double b) { return a == b || std::abs(a - b) <= 1e-6 * std::abs(b); }

/// Arguments that only tune or that a capture does not have.
bool is_free(std::string_view key) {
  constexpr std::array free = {
      "launch",        "attn_logits", "workspace_buffer", "max_num_partitions",
      "num_kv_splits", "persistent",  "req_pool_indices", "isa"};
  return std::ranges::count(free, key) > 0;
}

class Comparer {
 public:
  /// \param page_size  tokens a column of a page table stands for
  Comparer(const Problem& problem, std::int64_t most, std::int64_t page_size)
      : problem_(problem), most_(most), page_size_(page_size) {}

  template <class CallType, class Member>
  void field(const CallField<CallType, Member>& f, const CallType& expected, const CallType& got) {
    if (is_free(f.key)) return;
    value(f.key, expected.*(f.member), got.*(f.member));
  }
  SpecComparison take() && { return std::move(result_); }

  void add(std::string where, std::string expected, std::string got) {
    result_.differences.push_back(
        {std::move(where), std::move(expected), std::move(got), "", false});
  }
  void add_more(std::int64_t count) { result_.more += count; }
  std::int64_t most() const { return most_; }

 private:
  void value(std::string_view key, const TensorMeta& expected, const TensorMeta& got) {
    const std::string name(key);
    if (expected.dtype != got.dtype) {
      add(name + ".dtype", std::string(attest::name(expected.dtype)),
          std::string(attest::name(got.dtype)));
    }
    if (expected.shape != got.shape)
      add(name + ".shape", text_of(expected.shape), text_of(got.shape));
    if (expected.shape == got.shape && expected.strides != got.strides) {
      add(name + ".strides", text_of(expected.strides), text_of(got.strides));
    }
  }

  void value(std::string_view key, const IntArray& expected, const IntArray& got) {
    const std::string name(key);
    if (expected.meta.dtype != got.meta.dtype) {
      add(name + ".dtype", std::string(attest::name(expected.meta.dtype)),
          std::string(attest::name(got.meta.dtype)));
    }
    if (!got.recorded) {
      add(name, "values", "a hash alone");
    } else if (expected.meta.shape.size() == 2 && got.meta.shape.size() == 2) {
      table(name, expected, got);
    } else {
      list(name, expected, got);
    }
  }

  /// Entry i of an array by request, or anything else of one dimension.
  void list(const std::string& name, const IntArray& expected, const IntArray& got) {
    const std::size_t count = std::min(expected.values.size(), got.values.size());
    const bool by_request = expected.values.size() == problem_.requests.size();
    std::int64_t shown = 0;
    for (std::size_t i = 0; i < count; ++i) {
      if (expected.values[i] == got.values[i]) continue;
      if (by_request && !problem_.requests[i].live) continue;
      element(name + "[" + std::to_string(i) + "]", expected.values[i], got.values[i], shown);
    }
    if (got.values.size() < expected.values.size()) {
      add(name + ".shape", text_of(expected.meta.shape), text_of(got.meta.shape));
    }
  }

  /// A page table: row i is request i's; cells past its last page are free.
  void table(const std::string& name, const IntArray& expected, const IntArray& got) {
    std::int64_t shown = 0;
    for (std::size_t i = 0; i < problem_.requests.size(); ++i) {
      const Request& r = problem_.requests[i];
      if (!r.live) continue;
      const std::int64_t used = (r.kv_len() + page_size_ - 1) / page_size_;
      for (std::int64_t c = 0; c < used; ++c) {
        if (static_cast<std::int64_t>(i) >= got.size(0) || c >= got.size(1)) {
          element_text(cell(name, i, c), text_of(expected.at(i, static_cast<std::size_t>(c))),
                       "no such cell", shown);
          continue;
        }
        const std::int64_t a = expected.at(i, static_cast<std::size_t>(c));
        const std::int64_t b = got.at(i, static_cast<std::size_t>(c));
        if (a != b) element(cell(name, i, c), a, b, shown);
      }
    }
  }

  static std::string cell(const std::string& name, std::size_t i, std::int64_t c) {
    return name + "[" + std::to_string(i) + "][" + std::to_string(c) + "]";
  }

  void element(std::string where, std::int64_t expected, std::int64_t got, std::int64_t& shown) {
    element_text(std::move(where), text_of(expected), text_of(got), shown);
  }
  void element_text(std::string where, std::string expected, std::string got, std::int64_t& shown) {
    if (shown++ < most_) {
      add(std::move(where), std::move(expected), std::move(got));
    } else {
      add_more(1);
    }
  }

  void value(std::string_view key, double expected, double got) {
    if (!same(got, expected)) add(std::string(key), text_of(expected), text_of(got));
  }
  void value(std::string_view, const std::optional<Launch>&, const std::optional<Launch>&) {}
  void value(std::string_view, const std::optional<WorkPlan>&, const std::optional<WorkPlan>&) {}
  template <class T>
  void value(std::string_view key, const std::optional<T>& expected, const std::optional<T>& got) {
    if (expected && got) return value(key, *expected, *got);
    if (expected) add(std::string(key), "present", "absent");
    if (got) add(std::string(key), "absent", "present");
  }
  template <class T>
  void value(std::string_view key, const T& expected, const T& got) {
    if (expected != got) add(std::string(key), text_of(expected), text_of(got));
  }

  const Problem& problem_;
  std::int64_t most_;
  std::int64_t page_size_;
  SpecComparison result_;
};

/// SGLang's CPU kernels read slots through a pool row of the framework's choice: their tables are
/// compared by what each request finds there.
template <class CallType>
void compare_slots(const CallType& expected, const CallType& got, const Problem& p,
                   Comparer& comparer) {
  const auto slot = [](const CallType& c, std::size_t i, std::int64_t t) -> std::int64_t {
    if (i >= c.req_pool_indices.values.size()) return -1;
    const std::int64_t encoder =
        c.encoder_lens && i < c.encoder_lens->values.size() ? c.encoder_lens->values[i] : 0;
    const std::int64_t row = c.req_pool_indices.values[i];
    const std::int64_t width = c.req_to_token.size(1);
    if (row < 0 || row >= c.req_to_token.size(0) || encoder + t >= width) return -1;
    return c.req_to_token.values[static_cast<std::size_t>(row * width + encoder + t)];
  };
  if (!got.req_to_token.recorded) return;
  std::int64_t shown = 0;
  for (std::size_t i = 0; i < p.requests.size(); ++i) {
    for (std::int64_t t = 0; p.requests[i].live && t < p.requests[i].kv_len(); ++t) {
      const std::int64_t a = slot(expected, i, t);
      const std::int64_t b = slot(got, i, t);
      if (a == b) continue;
      if (shown++ >= comparer.most()) {
        comparer.add_more(1);
        continue;
      }
      comparer.add(
          "req_to_token of token " + std::to_string(t) + " of request " + std::to_string(i),
          std::to_string(a), b < 0 ? "no such cell" : std::to_string(b));
    }
  }
}

/// The planner places its cuts by the device: rules judge them, no other list is the right one.
bool is_planned(const MlaDecodeCall& call, std::string_view key) {
  return is_work_list(key) || (key == "persistent" && call.work_info_set);
}
template <class CallType>
bool is_planned(const CallType&, std::string_view) {
  return false;
}

template <class CallType>
constexpr bool has_token_table =
    std::is_same_v<CallType, ExtendCall> || std::is_same_v<CallType, DecodeCall>;

template <class CallType>
SpecComparison compare(const CallType& expected, const CallType& got, const Problem& problem,
                       std::int64_t most) {
  std::int64_t page_size = 1;
  if constexpr (std::is_same_v<CallType, UnifiedCall>) {
    page_size = std::max<std::int64_t>(1, expected.k.size(1));
  }
  if constexpr (std::is_same_v<CallType, VllmCpuCall>) {
    page_size = std::max<std::int64_t>(1, expected.key_cache.size(2));
  }
  Comparer comparer(problem, most, page_size);
  const auto each = [&](const auto& field) {
    if (has_token_table<CallType> && field.key == "req_to_token") return;
    if (is_planned(got, field.key)) return;
    comparer.field(field, expected, got);
  };
  std::apply([&](const auto&... fields) { (each(fields), ...); }, call_fields<CallType>);
  if constexpr (has_token_table<CallType>) compare_slots(expected, got, problem, comparer);
  return std::move(comparer).take();
}

/// "cu_seqlens_q" of "cu_seqlens_q[2]", "cu_seqlens_q.dtype" and "cu_seqlens_q of request 0".
std::string_view argument_of(std::string_view where) {
  return where.substr(0, where.find_first_of("[. "));
}

void name_rules(const std::vector<Finding>& findings, SpecComparison& comparison) {
  for (SpecDifference& difference : comparison.differences) {
    for (const Finding& finding : findings) {
      if (argument_of(finding.where) != argument_of(difference.where)) continue;
      if (!difference.rule.empty() && !rejects(finding.severity)) continue;
      difference.rule = finding.rule;
      difference.rejected = rejects(finding.severity);
      if (difference.rejected) break;
    }
  }
}

}  // namespace

SpecComparison spec_differences(const Call& expected, const Call& got, const Problem& problem,
                                std::int64_t most_elements) {
  if (expected.index() != got.index()) {
    SpecComparison comparison;
    comparison.unsupported = "calls of two signatures";
    return comparison;
  }
  return std::visit(
      [&](const auto& a) {
        return compare(a, std::get<std::decay_t<decltype(a)>>(got), problem, most_elements);
      },
      expected);
}

SpecComparison compare_with_spec(const CapturedCall& captured) {
  SpecComparison comparison;
  if (!captured.call || !captured.problem) {
    comparison.unsupported = captured.unsupported.empty() ? "no truth was recorded beside the call"
                                                          : captured.unsupported;
  } else {
    const SlotMap slots = make_slot_map(*captured.problem);
    const Lowered<Call> spec = lower(signature_of(*captured.call), *captured.problem, slots);
    if (const auto* const refused = std::get_if<Unsupported>(&spec)) {
      comparison.unsupported = refused->reason;
    } else {
      comparison = spec_differences(std::get<Call>(spec), *captured.call, *captured.problem);
      name_rules(check_captured(captured).findings, comparison);
    }
  }
  comparison.id = captured.id;
  comparison.kernel = captured.kernel;
  comparison.mode = captured.mode;
  comparison.path = captured.path;
  comparison.file_version = captured.file_version;
  comparison.place = place_of({captured.file, captured.line, ""});
  return comparison;
}

std::string spec_text(const SpecComparison& c) {
  if (c.unsupported.empty() && c.differences.empty()) return "";
  std::string text =
      printable((c.place.empty() ? "" : c.place + "  ") + c.id + "  " + c.kernel + "  " + c.mode +
                " " + c.path + (c.file_version.empty() ? "" : "  of " + c.file_version)) +
      "\n";
  if (!c.unsupported.empty()) {
    return text + "  nothing to compare with: " + printable(c.unsupported) + "\n";
  }
  for (const SpecDifference& d : c.differences) {
    text += "  " + printable(d.where + ": expected " + d.expected + ", got " + d.got);
    text += d.rule.empty()
                ? "  (no rule asks for it)\n"
                : "  (" + std::string(d.rejected ? "rejected by " : "noted by ") + d.rule + ")\n";
  }
  if (c.more > 0) text += "  and " + std::to_string(c.more) + " more elements\n";
  return text;
}

void SpecSummary::add(const SpecComparison& c) {
  ++calls;
  if (!c.unsupported.empty()) ++unsupported;
  if (c.differences.empty()) return;
  ++differing;
  if (std::ranges::any_of(c.differences, &SpecDifference::rejected)) ++rejected;
}

std::string SpecSummary::text() const {
  return std::to_string(calls) + (calls == 1 ? " call: " : " calls: ") +
         std::to_string(calls - differing - unsupported) + " as specified, " +
         std::to_string(differing) + " different (" + std::to_string(rejected) +
         " of them in a rejected argument), " + std::to_string(unsupported) +
         " with nothing to compare with.\n";
}

int SpecSummary::exit_code() const {
  if (calls == 0) return exit_usage;
  if (differing > 0) return attest::exit_code(Verdict::mismatch);
  return calls == unsupported ? attest::exit_code(Verdict::unsupported) : 0;
}

}  // namespace attest
