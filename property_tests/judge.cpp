#include "property_tests/judge.hpp"

#include <algorithm>
#include <cctype>
#include <optional>

#include "contracts/rules.hpp"
#include "property_tests/isolated_backend.hpp"
#include "property_tests/launch_limits.hpp"
#include "property_tests/launch_pair.hpp"
#include "property_tests/long_context.hpp"
#include "property_tests/null_oracles.hpp"
#include "property_tests/second_look.hpp"

namespace attest {
namespace {

void say(Judgement& judgement, Verdict verdict, std::string reason) {
  judgement.verdict = verdict;
  judgement.reason = std::move(reason);
}

/// The call to launch, or nothing after saying why there is none.
std::optional<Call> call_to_launch(const Case& c, const SlotMap& slots, const Backend& backend,
                                   Judgement& judgement) {
  auto made = call_of(c, slots);
  if (auto* no = std::get_if<Unsupported>(&made)) {
    say(judgement, Verdict::unsupported, no->reason);
    return std::nullopt;
  }
  Call call = std::move(std::get<Call>(made));
  const Signature takes = backend.capabilities().signature;
  if (signature_of(call) != takes) {
    say(judgement, Verdict::unsupported,
        "the backend takes " + std::string(name(takes)) + " calls, this is one of " +
            std::string(name(signature_of(call))));
    return std::nullopt;
  }
  return call;
}

/// Whether the call may be launched as far as the rules go.
bool rules_allow(const Call& call, const Problem& problem, const SlotMap& slots,
                 const Backend& backend, RulesMode mode, Judgement& judgement) {
  if (mode == RulesMode::off) return true;
  const Report report = check(call, Truth{problem, slots, backend.capabilities()});
  judgement.findings = report.findings();
  if (mode == RulesMode::enforce && report.rejects()) {
    const auto first = std::find_if(report.findings().begin(), report.findings().end(),
                                    [](const Finding& f) { return rejects(f.severity); });
    say(judgement, Verdict::rejected, to_string(*first));
    return false;
  }
  if (report.missing().empty()) return true;
  say(judgement, Verdict::unsupported, "values of " + report.missing().front() + " not recorded");
  return false;
}

bool can_run(const Call& call, const Backend& backend, Judgement& judgement) {
  if (const Answer supported = backend.supports(call); !supported) {
    say(judgement, Verdict::unsupported, supported.reason);
    return false;
  }
  return true;
}

void copy_account(const RunResult& result, Judgement& judgement) {
  judgement.engine = result.engine;
  judgement.form = result.form;
  judgement.counters = result.counters;
  judgement.lints = result.lints;
}

/// The rows that the reference has to compute, in words too; none: all.
std::vector<std::int64_t> sample(const Case& c, Attended& meaning, Judgement& judgement) {
  const std::vector<std::int64_t> rows = sample_rows(c, meaning);
  for (const std::int64_t row : rows) {
    judgement.sampled += (judgement.sampled.empty() ? "rows " : ", ") + std::to_string(row);
  }
  if (!rows.empty()) {
    judgement.sampled += " of " + std::to_string(meaning.rows.size()) + " compared";
  }
  return rows;
}

Expected expectation(const Attended& meaning, const TensorSource& source, const Backend& backend,
                     const JudgeOptions& options, std::vector<std::int64_t> only_rows) {
  ReferenceOptions reference;
  reference.only_rows = std::move(only_rows);
  reference.threads = options.reference_threads;
  reference.round_scaled_q = backend.profile().q_scaled_in_input_dtype;
  return reference_attention(meaning, source, reference);
}

void note_worst(Judgement& judgement) {
  for (const OracleResult& result : judgement.oracles) {
    if (result.oracle == "hard") judgement.worst_over_bound = result.worst;
    if (result.oracle == "z") judgement.worst_z = result.worst;
  }
}

bool has_values(const Attended& meaning) {
  return std::any_of(meaning.rows.begin(), meaning.rows.end(),
                     [](const AttendedRow& row) { return row.expect == RowExpectation::value; });
}

/// The verdict on numbers: the first oracle that failed names the reason.
/// \returns whether there is a mismatch to explain.
bool weigh(const TensorSource& source, const Attended& meaning, const Expected& expected,
           const Launched& launched, const Backend& backend, Judgement& judgement) {
  const Output& got = launched.finished().out;
  judgement.oracles = launched.agreement;
  if (has_values(meaning)) {  // a batch of padding has no numbers, only damage to look for
    const auto numbers = compare(meaning, expected, got, backend.profile(), source);
    judgement.oracles.insert(judgement.oracles.end(), numbers.begin(), numbers.end());
    note_worst(judgement);
  }
  const auto failed = std::find_if(judgement.oracles.begin(), judgement.oracles.end(),
                                   [](const OracleResult& r) { return !r.passed; });
  if (failed == judgement.oracles.end()) {
    const Agreed agreed{meaning, expected, backend.profile(), source, expected.scaled_q_rounded};
    if (auto why = why_untrusted(agreed)) say(judgement, Verdict::untrusted, std::move(*why));
    return false;
  }
  say(judgement, Verdict::mismatch, failed->oracle + ": " + failed->detail);
  return true;
}

/// Where it decides whether a launch hung.
std::string limit_flag(std::chrono::milliseconds limit) {
  if (limit == JudgeOptions{}.time_limit) return "";
  const std::string thousandths = std::to_string(1000 + limit.count() % 1000).substr(1);
  std::string seconds = std::to_string(limit.count() / 1000) + "." + thousandths;
  seconds.erase(seconds.find_last_not_of('0') + 1);
  if (seconds.back() == '.') seconds.pop_back();
  return " --time-limit " + seconds;
}

/// Whether the backend can do what the run forces on it.
Answer can_force(const RunOptions& run, const Backend& backend) {
  const Capabilities& can = backend.capabilities();
  if (!run.form.empty() && !can.forms) {
    return Answer::no("the backend has no forms 2d and 3d to force one of");
  }
  if (run.kv_splits > can.most_kv_splits) {
    return Answer::no("the backend can be made to split the keys " +
                      (can.most_kv_splits == 0
                           ? std::string("nowhere")
                           : "into " + std::to_string(can.most_kv_splits) + " parts at most") +
                      ", not into " + std::to_string(run.kv_splits));
  }
  return {};
}

void decide(const Case& c, const Backend& backend, const JudgeOptions& options,
            Judgement& judgement) {
  if (auto error = problem_error(c.problem)) {
    return say(judgement, Verdict::unsupported, "not a legal problem: " + *error);
  }
  const SlotMap slots = make_slot_map(c.problem);
  const auto call = call_to_launch(c, slots, backend, judgement);
  if (!call) return;
  if (c.aim) {
    if (auto why = not_reached(*c.aim, *call)) {
      return say(judgement, Verdict::untrusted, *std::move(why));
    }
  }
  // The rules come first: a call can be judged as a call where its kernel cannot run.
  if (!rules_allow(*call, c.problem, slots, backend, options.rules, judgement)) return;
  if (const Answer available = backend.available(); !available) {
    return say(judgement, Verdict::unavailable, available.reason);
  }
  if (!can_run(*call, backend, judgement)) return;
  if (const Answer forced = can_force(options.run, backend); !forced) {
    return say(judgement, Verdict::unsupported, forced.reason);
  }
  if (auto why = cannot_launch(*call, c.problem, slots, options.run.kv_splits)) {
    return say(judgement, Verdict::unsupported, *std::move(why));
  }

  const TensorSource source(c.problem, c.recipe, c.seed, c.poison);
  Attended meaning = attended(c.problem);
  const std::vector<std::int64_t> only_rows = sample(c, meaning, judgement);
  if (options.before_launch) options.before_launch(judgement.repro);
  std::optional<IsolatedBackend> isolated;
  const bool in_worker = options.isolate || backend.capabilities().isolate;
  if (in_worker && !backend.has_own_process()) {
    isolated.emplace(backend, options.worker, options.time_limit);
  }
  const Backend& kernel = isolated ? *isolated : backend;
  const Launched launched = launch(c, *call, source, meaning, kernel, options);
  if (launched.result) copy_account(*launched.result, judgement);
  if (launched.ended) return say(judgement, *launched.ended, launched.reason);
  const Expected expected = expectation(meaning, source, backend, options, only_rows);
  const bool wrong = weigh(source, meaning, expected, launched, backend, judgement);
  if (!wrong || !options.diagnose) return;
  const Failure failure{*call,
                        source,
                        meaning,
                        launched.finished().out,
                        backend.profile(),
                        judgement.oracles,
                        launched.finished().stray_reads};
  judgement.diagnosis = diagnose_with_a_second_look(c, failure, kernel, options, only_rows);
}

}  // namespace

Judgement judge(const Case& c, const Backend& backend, const JudgeOptions& options) {
  const auto begin = std::chrono::steady_clock::now();
  JudgeOptions within = options;
  within.run.time_limit = options.time_limit;
  Judgement judgement;
  judgement.backend = backend.name();
  judgement.engine = split_backend_name(backend.name()).engine;
  judgement.repro = repro_line(c, backend.selector(), options.rules, options.program);
  if (options.isolate || backend.capabilities().isolate) {
    judgement.repro += limit_flag(options.time_limit);
  }
  decide(c, backend, within, judgement);
  judgement.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return judgement;
}

std::string shell_word(std::string_view text) {
  const auto plain = [](unsigned char c) {
    return std::isalnum(c) ||
           std::string_view("._-/@%+=:,").find(static_cast<char>(c)) != std::string_view::npos;
  };
  if (!text.empty() && std::all_of(text.begin(), text.end(), plain)) return std::string(text);
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

std::string repro_line(const Case& c, std::string_view backend, RulesMode rules,
                       std::string_view program) {
  const bool generated = c.origin.starts_with("--");
  std::string line(program);
  line += generated ? " run --backend " + shell_word(backend) + ' ' + c.origin
                    : " replay " + shell_word(c.origin) + " --backend " + shell_word(backend);
  if (rules == RulesMode::report) line += " --rules=report";
  if (rules == RulesMode::off) line += " --rules=off";
  if (generated && !c.fault.empty()) line += " --fault " + c.fault;
  return line;
}

}  // namespace attest
