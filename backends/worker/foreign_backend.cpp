#include "backends/worker/foreign_backend.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <thread>

#include "backends/worker/call_image.hpp"
#include "backends/worker/shared_memory.hpp"
#include "backends/worker/worker_errors.hpp"
#include "backends/worker/worker_process.hpp"
#include "contracts/resource_error.hpp"

namespace attest {
namespace {

using std::chrono::milliseconds;

/// To start, import a framework and touch its device.
constexpr milliseconds start_limit{180'000};
/// Attempts to start a process after one was lost, and the pause between them.
constexpr int most_starts = 3;
constexpr std::chrono::seconds start_pause{1};

std::string in_words(const WorkerAnswer& answer) {
  std::string text = answer.how;
  if (!answer.doing.empty()) {
    text += ", " + std::to_string(answer.silent.count()) +
            " ms after it said: " + alive_text(answer.doing);
  }
  if (!answer.last_words.empty()) text += "; it last wrote: " + answer.last_words;
  return text;
}

/// Whether the call uses what an argument of this kind stands for.
bool is_used(const Argument& argument) {
  if (const auto* const both = std::get_if<std::array<std::int64_t, 2>>(&argument.value)) {
    return both->front() >= 0;
  }
  if (const auto* const width = std::get_if<std::int64_t>(&argument.value)) return *width > 0;
  if (const auto* const cap = std::get_if<double>(&argument.value)) return *cap > 0;
  return std::holds_alternative<TensorArgument>(argument.value);
}

/// An option that the call uses and the description leaves out; empty: none.
std::string_view undeclared(std::span<const Argument> arguments, const Capabilities& can) {
  struct Option {
    std::string_view argument, says;
    bool Capabilities::* declared;
  };
  static constexpr Option options[] = {
      {"window_size", "a window", &Capabilities::window},
      {"sliding_window", "a window", &Capabilities::window},
      {"sliding_window_size", "a window", &Capabilities::window},
      {"softcap", "a softcap", &Capabilities::softcap},
      {"logit_cap", "a softcap", &Capabilities::softcap},
      {"logits_soft_cap", "a softcap", &Capabilities::softcap},
      {"sinks", "sinks", &Capabilities::sinks},
      {"sink_ptr", "sinks", &Capabilities::sinks},
      {"tree_mask", "a tree mask", &Capabilities::tree_mask},
      {"custom_mask", "a tree mask", &Capabilities::tree_mask},
  };
  for (const Argument& argument : arguments) {
    const auto* const option = std::ranges::find(options, argument.name, &Option::argument);
    if (option != std::end(options) && !(can.*option->declared) && is_used(argument)) {
      return option->says;
    }
  }
  return {};
}

/// One question to a process that is asked nothing else.
std::string ask_once(const WorkerCommand& command, const std::string& question) {
  const SharedMemory memory;
  WorkerProcess process(command.argv, {memory.descriptor(), std::string(alive_prefix)});
  WorkerAnswer answer = process.ask(question, start_limit);
  if (answer.outcome == WorkerOutcome::reply) return std::move(answer.reply);
  throw BackendError(command.from +
                     ": its process died before it described itself: " + in_words(answer));
}

}  // namespace

Description describe_kernel(const WorkerCommand& command) {
  return description_from(ask_once(command, hello_message("", 0)), command.from);
}

std::vector<Description> describe_kernels(const WorkerCommand& command) {
  return descriptions_from(ask_once(command, describe_message()), command.from);
}

/// The answer of available(), once it is known; shared by copies.
struct ForeignBackend::Checked {
  /// Of the links' table: an address may belong to another backend later.
  const std::uint64_t number = next_number();
  std::once_flag once;
  Answer answer;

  static std::uint64_t next_number() {
    static std::atomic<std::uint64_t> count{0};
    return ++count;
  }
};

ForeignBackend::ForeignBackend(WorkerCommand command, Description kernel)
    : command_(std::move(command)),
      kernel_(std::move(kernel)),
      checked_(std::make_shared<Checked>()) {}

Answer ForeignBackend::available() const {
  if (!kernel_.available) return kernel_.available;
  std::call_once(checked_->once, [this] {
    try {
      const std::string reply = ask_once(command_, hello_message(name(), 0));
      checked_->answer = description_from(reply, command_.from).available;
    } catch (const BackendError& error) {
      checked_->answer = Answer::no(error.what());
    }
  });
  return checked_->answer;
}

/// One thread's process and the memory it shares.
class ForeignBackend::Link {
 public:
  explicit Link(const ForeignBackend& backend)
      : name_(backend.name()),
        from_(backend.command_.from),
        process_(backend.command_.argv, {memory_.descriptor(), std::string(alive_prefix)}) {}

  /// Within `limit` once a process is there and has said hello.
  WorkerAnswer ask(const std::string& question, milliseconds limit, int device) {
    greet(device);
    WorkerAnswer answer = process_.ask(question, limit);
    if (answer.outcome != WorkerOutcome::reply || process_.starts() != greeted_) greeted_ = 0;
    return answer;
  }
  /// The next question goes to a fresh process.
  void stop() {
    process_.stop();
    greeted_ = 0;
  }

  SharedMemory& memory() { return memory_; }
  std::int64_t next_case() { return cases_++; }

  /// How a process died or hung over supports(): the verdict of the launch that follows.
  std::string pending;

 private:
  void greet(int device) {
    if (greeted_ != 0 && greeted_ == process_.starts() && device == device_) return;
    std::string why;
    for (int attempt = 0; attempt < most_starts; ++attempt) {
      if (attempt > 0) std::this_thread::sleep_for(start_pause);
      why = try_to_greet(device);
      if (why.empty()) return;
      process_.stop();
    }
    throw ResourceError(ENODEV, name_ + ": no process of it answers, tried " +
                                    std::to_string(most_starts) + " times: " + why);
  }

  std::string try_to_greet(int device) {
    const WorkerAnswer answer = process_.ask(hello_message(name_, device), start_limit);
    if (answer.outcome != WorkerOutcome::reply) return in_words(answer);
    try {
      const Description now = description_from(answer.reply, from_);
      if (!now.available) return now.available.reason;
    } catch (const BackendError& error) {
      return error.what();
    }
    greeted_ = process_.starts();
    device_ = device;
    return "";
  }

  std::string name_, from_;
  SharedMemory memory_;
  WorkerProcess process_;
  int greeted_ = 0;  ///< which start of the process said hello; 0: none
  int device_ = 0;
  std::int64_t cases_ = 0;
};

ForeignBackend::Link& ForeignBackend::link_of_this_thread() const {
  thread_local std::map<std::uint64_t, std::unique_ptr<Link>> links;
  std::unique_ptr<Link>& link = links[checked_->number];
  if (!link) link = std::make_unique<Link>(*this);
  return *link;
}

Answer ForeignBackend::has_device(int device) const {
  if (device >= 0 && device < kernel_.devices) return {};
  return Answer::no(kernel_.name + " has " + std::to_string(kernel_.devices) +
                    " devices here; there is no device " + std::to_string(device));
}

Answer ForeignBackend::supports(const Call& call) const {
  if (Answer laid_out = CallImage::supports(call); !laid_out) return laid_out;
  const std::vector<Argument> arguments = arguments_of(call);
  if (const std::string_view option = undeclared(arguments, capabilities()); !option.empty()) {
    return Answer::no(kernel_.name + " does not say that it takes " + std::string(option));
  }
  Link& link = link_of_this_thread();
  const std::string question = supports_message(arguments, signature_of(call));
  const WorkerAnswer answer = link.ask(question, milliseconds(60'000), 0);
  const std::string asked = "asked whether it supports the call: ";
  if (answer.outcome != WorkerOutcome::reply) {
    link.pending = asked + in_words(answer);
    return {};
  }
  try {
    return answer_from(answer.reply, command_.from);
  } catch (const BackendError& error) {
    link.pending = asked + error.what();
    return {};
  }
}

RunResult ForeignBackend::run(const Call& call, const TensorSource& source,
                              const RunOptions& options) const {
  Link& link = link_of_this_thread();
  if (!link.pending.empty()) throw WorkerCrashed(std::exchange(link.pending, ""));
  CallImage image(call, source, options.sentinel);
  link.memory().grow(image.bytes());
  image.write(link.memory().bytes());
  const std::string question = run_message(image.arguments(), signature_of(call),
                                           link.memory().bytes().size(), link.next_case(), options);
  const WorkerAnswer answer = link.ask(question, options.time_limit, options.device);
  if (answer.outcome == WorkerOutcome::crashed) {
    throw WorkerCrashed("the kernel's process died: " + in_words(answer));
  }
  if (answer.outcome == WorkerOutcome::hung) throw WorkerHung(in_words(answer));
  const RunReply reply = run_reply_from(answer.reply, command_.from);
  if (reply.kind == RunReply::Kind::failed) throw BackendError(reply.text);
  if (reply.kind == RunReply::Kind::lost) {
    link.stop();
    throw WorkerCrashed("the device was lost: " + reply.text);
  }
  RunResult result;
  result.engine = reply.engine.empty() ? split_backend_name(name()).engine : reply.engine;
  result.form = reply.form;
  result.counters = reply.counters;
  result.lints = reply.lints;
  if (reply.kind == RunReply::Kind::raised) result.raised = reply.text;
  image.collect(link.memory().bytes(), result);
  return result;
}

}  // namespace attest
