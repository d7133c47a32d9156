#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "contracts/address_interval.hpp"
#include "fixtures/captured.hpp"
#include "fixtures/captured_check.hpp"
#include "fixtures/labels.hpp"

namespace attest {

/// What became of one captured call.
enum class CallOutcome {
  ok,            ///< every rule that applies was evaluated; none rejects
  wrong,         ///< a rule of severity wrong or fault fired
  not_recorded,  ///< nothing rejects, but a rule needed values the capture kept only as a hash
  unsupported,   ///< a signature this version does not know, or no truth beside the call
};
std::string_view name(CallOutcome outcome);

/// A captured call, what the rules say, and how that stands to the label beside it.
struct CheckedCall {
  std::string id, kernel, mode, path, file_version;
  std::string place;  ///< "calls.jsonl:17"
  std::vector<std::string> label;
  CapturedCheck check;
  LabelComparison comparison;
  std::vector<AddressInterval> addresses;  ///< what the call makes its kernel touch

  CallOutcome outcome() const;
  bool judged() const { return outcome() == CallOutcome::ok || outcome() == CallOutcome::wrong; }
  /// What --expect-labels has to say of it: its label does not hold, or no label covers that it is
  /// wrong.
  bool surprises() const;
};

CheckedCall check_call(const CapturedCall& captured);

/// Reads "-" (standard input), a file or a directory; of that, with `since`, the files written
/// then or later. What cannot be read goes to `unread`. \returns how many files `since` left out
/// \throws ResourceError, and what `between` throws
std::int64_t read_calls(const std::string& source,
                        const std::function<void(const CapturedCall&)>& each,
                        std::optional<std::filesystem::file_time_type> since,
                        const UnreadSink& unread, const BetweenLines& between = {});

/// "90s", "30m", "2h", "7d"; nothing where the text is none of these.
std::optional<std::chrono::seconds> age_from_text(std::string_view text);

/// What all calls together touch of one operand.
struct Reach {
  AddressInterval lowest, farthest;  ///< the calls that begin first and end last
  std::string lowest_place;          ///< of the call that begins first

  /// Below or above where every call is, else straddling.
  Side side(const Boundary& boundary) const;
  /// What it means that the lowest byte is negative, and which call says so; empty where it is not.
  std::string before_base() const;
};

/// Sums over many calls.
struct CheckSummary {
  struct Kernel {
    std::int64_t calls = 0, ok = 0, wrong = 0, doubtful = 0, not_recorded = 0, unsupported = 0;
  };
  std::map<std::string, Kernel> kernels;
  std::map<std::string, std::int64_t> wrong_by_rule;  ///< calls a rejecting rule fired on
  std::map<std::string, std::int64_t> found_by_rule;  ///< calls a slow or policy rule fired on
  std::map<std::string, std::set<Severity>> severities_by_rule;  ///< of the findings of both
  /// Calls by the public bug that their rules came from: the first thread of each rule's source.
  std::map<std::string, std::int64_t> wrong_by_thread;
  std::map<std::string, Reach> reach;  ///< by operand
  std::int64_t agreeing = 0;
  std::int64_t unlabelled = 0, unlabelled_wrong = 0;  ///< judged calls without a label
  std::vector<CheckedCall> differing;
  std::vector<CheckedCall> doubtful;  ///< labelled only "unsure" or "perf"
  std::int64_t unread = 0;            ///< lines and files that are no calls
  std::int64_t left_out = 0;          ///< files that were written before --since
  bool early = false;                 ///< something ended the reading before its end

  void add(const CheckedCall& call);
  Kernel total() const;
};

/// Threads that a rule's source names, as "owner/repository#number".
std::vector<std::string> threads_in(std::string_view source);

/// 65 when something could not be read, else 64 when there was nothing to read, else 3 when no call
/// could be judged. Without labels: 2 when a call is wrong, else 0. With labels: 7 when one
/// differs, else 2 when a call without a label is wrong, else 3 when no label agrees either, else
/// 0.
int check_exit_code(const CheckSummary& summary, bool expect_labels);

}  // namespace attest
