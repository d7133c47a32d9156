#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "backends/backend.hpp"
#include "contracts/rule.hpp"
#include "contracts/verdict.hpp"
#include "property_tests/case.hpp"
#include "property_tests/diagnose.hpp"
#include "reference/compare.hpp"

namespace attest {

enum class RulesMode { enforce, report, off };

struct JudgeOptions {
  RulesMode rules = RulesMode::enforce;
  RunOptions run;
  std::chrono::milliseconds time_limit{60'000};  ///< per launch in a worker
  /// Launch in a worker whatever the backend asks for: of calls that nobody has judged before, and
  /// where a time limit was asked for.
  bool isolate = false;
  /// Command line of the worker for isolated backends (isolated_backend.hpp); empty = the
  /// program `attest` beside this one.
  std::vector<std::string> worker;
  int reference_threads = 0;
  /// How a shell gets this program again, as the person who called it spelled it.
  std::string program = "attest";
  /// Called with the repro line right before a case's first launch; must flush. Empty = nobody
  /// listens.
  std::function<void(const std::string&)> before_launch;
  /// Run each case with both poisons and both sentinels and require equal bits.
  bool both_poisons = true;
  /// Look for the known mistake that explains a mismatch: a few more evaluations of the reference.
  bool diagnose = true;
  std::size_t most_same = few_names;  ///< as in diagnose()
};

/// Everything there is to say about one case on one backend.
struct Judgement {
  Verdict verdict = Verdict::pass;
  std::string reason;  ///< one sentence for every verdict that is not a pass
  std::vector<Finding> findings;
  std::vector<OracleResult> oracles;
  std::string
      diagnosis;      ///< which known mistake explains the output; empty = none looked for or found
  std::string repro;  ///< one shell line
  std::string backend, engine, form;
  std::map<std::string, std::int64_t> counters;
  std::vector<std::string> lints;
  std::string sampled;          ///< "rows 0, 15, ... of 64 compared"; empty = all
  double worst_over_bound = 0;  ///< largest hard error / bound
  double worst_z = 0;
  double seconds = 0;
};

/// lower -> rules -> repro line -> run -> reference -> every applicable oracle -> null oracles.
/// Never throws for what a case or kernel does; std::bad_alloc and I/O errors of the harness do.
Judgement judge(const Case& c, const Backend& backend, const JudgeOptions& options = {});

/// The shell line that judges the case again. `program` is pasted as it is.
std::string repro_line(const Case& c, std::string_view backend, RulesMode rules,
                       std::string_view program = "attest");

/// `text` as one word of a shell: in quotes when it needs them.
std::string shell_word(std::string_view text);

}  // namespace attest
