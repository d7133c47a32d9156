#include "backends/plugin/plugin_host.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "backends/plugin/plugin_call.hpp"
#include "backends/plugin/plugin_library.hpp"
#include "backends/worker/frame.hpp"
#include "backends/worker/worker_program.hpp"
#include "contracts/verdict.hpp"

namespace attest {
namespace {

using Json = nlohmann::ordered_json;

/// The harness's shared memory as this process sees it.
class MappedMemory {
 public:
  explicit MappedMemory(int fd) : fd_(fd) {}
  MappedMemory(const MappedMemory&) = delete;
  MappedMemory& operator=(const MappedMemory&) = delete;
  ~MappedMemory() { unmap(); }

  std::span<std::byte> of(std::size_t bytes) {
    if (bytes == size_) return {base_, size_};
    unmap();
    void* const mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
    if (mapped == MAP_FAILED) {
      throw BackendError("mapping " + std::to_string(bytes) +
                         " bytes of shared memory: " + std::strerror(errno));
    }
    base_ = static_cast<std::byte*>(mapped);
    size_ = bytes;
    return {base_, size_};
  }

 private:
  void unmap() {
    if (base_ != nullptr) munmap(base_, size_);
    base_ = nullptr;
    size_ = 0;
  }

  int fd_;
  std::byte* base_ = nullptr;
  std::size_t size_ = 0;
};

/// Calls a function of the plugin. An exception of its own is how C++ kernels fail.
template <class Call>
std::pair<int, std::string> call_plugin(const PluginLibrary& plugin, const char* function,
                                        Call&& call) {
  std::array<char, 1024> why{};
  int code = ATTEST_FAILED;
  try {
    code = call(why.data(), why.size());
  } catch (const std::exception& error) {
    return {ATTEST_FAILED, plugin.path() + ": " + function + "() threw: " + error.what()};
  } catch (...) {
    return {ATTEST_FAILED, plugin.path() + ": " + function + "() threw what is no std::exception"};
  }
  why.back() = '\0';
  std::string text = why.data();
  if (code == ATTEST_OK) return {code, ""};
  if (text.empty()) text = std::string(function) + "() gave no reason";
  if (code == ATTEST_NO) return {code, text};
  if (code == ATTEST_FAILED) return {code, plugin.path() + ": " + text};
  return {ATTEST_FAILED, plugin.path() + ": " + function + "() returned " + std::to_string(code) +
                             ", which is no attest_result"};
}

class PluginWorker {
 public:
  PluginWorker(std::string path, int shared) : path_(std::move(path)), memory_(shared) {}

  std::string answer(const std::string& request) {
    Json reply = {{"attest", worker_protocol}};
    try {
      const Json json = Json::parse(request);
      const int version = json.value("attest", 0);
      if (version != worker_protocol) {
        throw BackendError("the harness speaks version " + std::to_string(version) +
                           " of the worker protocol, this program version " +
                           std::to_string(worker_protocol));
      }
      reply.update(answer_to(json, request));
    } catch (const std::exception& error) {
      reply["error"] = error.what();
    }
    return reply.dump(-1, ' ', false, Json::error_handler_t::replace);
  }

 private:
  Json answer_to(const Json& json, const std::string& request) {
    if (!plugin_) plugin_ = std::make_unique<PluginLibrary>(path_);
    const auto ask = json.value("ask", "");
    if (ask == "hello") return description();
    if (ask == "supports") return supports(request);
    if (ask == "run") return run(json, request);
    throw BackendError("nobody knows how to \"" + ask + "\"");
  }

  Json description() const {
    Json json = Json::parse(plugin_->describe(), nullptr, false);
    if (!json.is_object()) {
      throw BackendError(path_ + ": what attest_plugin_describe() gave is no JSON object");
    }
    json.erase("attest");
    return json;
  }

  Json supports(const std::string& request) const {
    const PluginCall call(request, {});
    const auto [code, why] = call_plugin(
        *plugin_, "attest_plugin_supports",
        [&](char* to, std::size_t size) { return plugin_->supports(call.get(), to, size); });
    if (code == ATTEST_FAILED) throw BackendError(why);
    return {{"yes", code == ATTEST_OK}, {"reason", why}};
  }

  Json run(const Json& json, const std::string& request) {
    const PluginCall call(request, memory_.of(json.at("shared_bytes").get<std::size_t>()));
    const auto [code, why] =
        call_plugin(*plugin_, "attest_plugin_run",
                    [&](char* to, std::size_t size) { return plugin_->run(call.get(), to, size); });
    Json reply = {{"engine", ""}};
    if (code == ATTEST_NO) reply["raised"] = why;
    if (code == ATTEST_FAILED) reply["failed"] = why;
    return reply;
  }

  std::string path_;
  MappedMemory memory_;
  std::unique_ptr<PluginLibrary> plugin_;
};

}  // namespace

bool names_a_plugin(std::string_view selector) {
  return selector.find('/') != std::string_view::npos || selector.ends_with(".so");
}

std::string canonical_plugin(std::string_view path) {
  std::error_code none;
  const std::filesystem::path file =
      std::filesystem::weakly_canonical(std::filesystem::absolute(path, none), none);
  const std::string text = file.string();
  const bool selects = !text.empty() && text.find(',') == std::string::npos && text.back() != ' ';
  return selects ? text : std::string(path);
}

std::unique_ptr<ForeignBackend> load_plugin(const std::string& path, const std::string& program,
                                            std::span<const std::string_view> taken) {
  std::vector<std::string> argv = worker_program();
  if (!program.empty()) argv.front() = program;
  argv.insert(argv.end(), {"--plugin", path});
  const WorkerCommand command{.argv = argv, .from = path, .selector = canonical_plugin(path)};
  Description kernel = describe_kernel(command);
  const BackendName name = split_backend_name(kernel.name);
  for (int number = 2; std::ranges::find(taken, kernel.name) != taken.end(); ++number) {
    kernel.name = name.implementation + "-" + std::to_string(number) + "." + name.signature + "@" +
                  name.engine;
  }
  return std::make_unique<ForeignBackend>(command, std::move(kernel));
}

int plugin_worker_main(const std::string& path, int shared, int socket) try {
  PluginWorker worker(path, shared);
  while (const std::optional<std::string> request = read_frame(socket)) {
    write_frame(socket, worker.answer(*request));
  }
  return 0;
} catch (const FrameError& error) {
  std::fprintf(stderr, "worker: %s\n", error.what());
  return exit_internal;
}

}  // namespace attest
