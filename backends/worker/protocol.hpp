#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/backend.hpp"
#include "backends/worker/arguments.hpp"

namespace attest {

/// Version of the messages below (docs/worker_protocol.md); every one carries it.
inline constexpr int worker_protocol = 1;

/// What a kernel in another process says about itself.
struct Description {
  std::string name;     ///< "torch.sdpa-math@cpu"
  std::string says;     ///< one line for `attest doctor`
  std::string version;  ///< of the kernel
  Answer available;
  std::string only_when_named;
  int devices = 1;
  Capabilities capabilities;
  NumericsProfile profile;
};

/// What one launch left, as the worker tells it; the tensors tell the rest.
struct RunReply {
  enum class Kind { ran, raised, failed, lost };
  Kind kind = Kind::ran;
  std::string text;  ///< of all but ran
  std::string form, engine;
  std::map<std::string, std::int64_t> counters;
  std::vector<std::string> lints;
};

/// A frame that is no reply: the worker says what it is doing. Starts so.
inline constexpr std::string_view alive_prefix = "{\"alive\":";

// Requests. A worker answers each with one frame, alive frames before it.
std::string describe_message();
std::string hello_message(std::string_view backend, int device);
std::string supports_message(std::span<const Argument> arguments, Signature signature);
std::string run_message(std::span<const Argument> arguments, Signature signature,
                        std::size_t shared_bytes, std::int64_t number, const RunOptions& options);

// Replies. \throws BackendError that starts with `from` ("./libmine.so") and names the JSON member:
// another protocol version, a member that is missing, unknown or of another type; or what the
// worker gives as its own error.
std::vector<Description> descriptions_from(std::string_view reply, const std::string& from);
Description description_from(std::string_view reply, const std::string& from);
Answer answer_from(std::string_view reply, const std::string& from);
RunReply run_reply_from(std::string_view reply, const std::string& from);
/// The text of an alive frame; empty where there is none.
std::string alive_text(std::string_view frame);

}  // namespace attest
