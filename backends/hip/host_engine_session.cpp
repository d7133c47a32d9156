#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "backends/hip/engine.hpp"
#include "backends/hip/runtime/host_engine.hpp"
#include "backends/hip/runtime/host_graph.hpp"

namespace attest::hip {
namespace {

class HostLaunches final : public LaunchGraph {
 public:
  explicit HostLaunches(const host::HostSettings& settings) : settings_(settings) {}
  host::HostGraph& graph() { return graph_; }
  void replay() override { graph_.replay(host::host_stream(settings_)); }

 private:
  host::HostSettings settings_;
  host::HostGraph graph_;
};

/// The host's own memory: nothing is copied but what may change.
class HostSession final : public LaunchSession {
 public:
  HostSession(int wave_size, const RunOptions& options) {
    settings_.wave_size = static_cast<unsigned>(wave_size);
    settings_.order = host::thread_order(options.thread_order);
    settings_.threads = options.threads;
  }
  const void* input(std::span<const std::byte> bytes) override { return bytes.data(); }
  void* metadata(std::span<const std::byte> bytes) override {
    scratch_.emplace_back(bytes.begin(), bytes.end());
    return scratch_.back().data();
  }
  void write(void* memory, std::span<const std::byte> bytes) override {
    std::memcpy(memory, bytes.data(), bytes.size());
  }
  void read(std::span<std::byte> bytes, const void* memory) override {
    std::memcpy(bytes.data(), memory, bytes.size());
  }
  const void* pool(const KvPool& pool) override { return pool.base(); }
  void* output(std::span<std::byte> bytes) override { return bytes.data(); }
  void* scratch(std::size_t bytes) override {
    scratch_.emplace_back(bytes, std::byte{0xff});  // a NaN in every format but e4m3fnuz
    return scratch_.back().data();
  }
  void run(const std::function<void(Stream)>& launches) override {
    launches(host::host_stream(settings_));
  }
  std::unique_ptr<LaunchGraph> capture(const std::function<void(Stream)>& launches) override {
    auto graph = std::make_unique<HostLaunches>(settings_);
    host::HostSettings recorded = settings_;
    recorded.recording = &graph->graph();
    launches(host::host_stream(recorded));
    return graph;
  }
  std::vector<std::string> finish() override { return {}; }

 private:
  host::HostSettings settings_;
  std::vector<std::vector<std::byte>> scratch_;
};

class HostEngine final : public Engine {
 public:
  explicit HostEngine(int wave_size) : wave_size_(wave_size) {}
  std::string_view name() const override { return "host"; }
  std::string_view says() const override { return "on fibers, any CPU"; }
  bool isolate() const override { return false; }
  int device_count() const override { return 1; }
  Answer usable(int device) const override {
    if (device == 0) return {};
    return Answer::no("the host engine is device 0; there is no device " + std::to_string(device));
  }
  PagedKernels kernels() const override { return paged_kernels_on_host(); }
  /// As few as show the split form in cases of a few hundred keys.
  int multiprocessors(int) const override { return 4; }
  std::string label(int) const override { return "host wave " + std::to_string(wave_size_); }
  std::unique_ptr<LaunchSession> session(const RunOptions& options) const override {
    return std::make_unique<HostSession>(wave_size_, options);
  }

 private:
  int wave_size_;
};

}  // namespace

std::unique_ptr<Engine> host_engine(int wave_size) {
  return std::make_unique<HostEngine>(wave_size);
}

}  // namespace attest::hip
