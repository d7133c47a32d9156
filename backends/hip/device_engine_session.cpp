#include <algorithm>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "backends/hip/engine.hpp"
#include "backends/hip/runtime/device.hpp"
#include "backends/hip/runtime/device_objects.hpp"

namespace attest::hip {
namespace {

/// Bytes on both sides of every output; a kernel must leave them alone.
constexpr std::size_t guard_bytes = 256;
constexpr std::byte guard{0xa5};

/// Copies of the host's buffers on one device.
class DeviceSession final : public LaunchSession {
 public:
  DeviceSession(const DeviceRuntime& runtime, const RunOptions& options)
      : runtime_(runtime), replay_(options.replay) {
    runtime_.use(options.device);
    stream_ = make_stream(runtime_);
  }

  const void* input(std::span<const std::byte> bytes) override {
    void* const memory = allocated(std::max<std::size_t>(bytes.size(), 1));
    runtime_.upload(memory, bytes, stream_.get());
    return memory;
  }

  const void* pool(const KvPool& pool) override {
    const std::vector<PoolBytes> contents = pool.contents();
    std::int64_t begin = 0;
    std::int64_t end = pool.span_bytes();
    for (const PoolBytes& part : contents) {
      begin = std::min(begin, part.offset);
      end = std::max(end, part.offset + static_cast<std::int64_t>(part.bytes.size()));
    }
    begin -= (256 + begin % 256) % 256;  // allocations are aligned to 256: so is element 0
    const auto size = static_cast<std::size_t>((end - begin + 15) / 16 * 16);
    auto* const base = static_cast<std::byte*>(allocated(size)) - begin;
    runtime_.fill(base + begin, pool.background(), size, stream_.get());
    for (const PoolBytes& part : contents) {
      runtime_.upload(base + part.offset, part.bytes, stream_.get());
    }
    return base;
  }

  void* output(std::span<std::byte> bytes) override {
    Output output{bytes, std::vector<std::byte>(bytes.size() + 2 * guard_bytes, guard), nullptr};
    std::copy(bytes.begin(), bytes.end(), output.with_guards.begin() + guard_bytes);
    output.memory = static_cast<std::byte*>(allocated(output.with_guards.size()));
    runtime_.upload(output.memory, output.with_guards, stream_.get());
    outputs_.push_back(std::move(output));
    return outputs_.back().memory + guard_bytes;
  }

  void* scratch(std::size_t bytes) override {
    const std::size_t size = (bytes + 15) / 16 * 16;
    void* const memory = allocated(std::max<std::size_t>(size, 16));
    runtime_.fill(memory, 0xffffffffU, size, stream_.get());
    return memory;
  }

  void run(const std::function<void(Stream)>& launches) override {
    if (!replay_) return launches(stream_.get());
    const DeviceGraph graph = capture(runtime_, stream_.get(), [&] { launches(stream_.get()); });
    runtime_.replay(graph.get(), stream_.get());
    runtime_.synchronize(stream_.get());
  }

  std::vector<std::string> finish() override {
    runtime_.synchronize(stream_.get());
    std::vector<std::string> damage;
    for (Output& output : outputs_) {
      runtime_.download(output.with_guards, output.memory, stream_.get());
      runtime_.synchronize(stream_.get());
      const auto payload = output.with_guards.begin() + guard_bytes;
      const auto end = payload + static_cast<std::ptrdiff_t>(output.bytes.size());
      std::copy(payload, end, output.bytes.begin());
      const auto is_guard = [](std::byte byte) { return byte == guard; };
      const bool before = std::all_of(output.with_guards.begin(), payload, is_guard);
      if (!before || !std::all_of(end, output.with_guards.end(), is_guard)) {
        damage.emplace_back(std::string("device memory ") + (before ? "behind" : "before") +
                            " an output was overwritten");
      }
    }
    return damage;
  }

 private:
  struct Output {
    std::span<std::byte> bytes;
    std::vector<std::byte> with_guards;
    std::byte* memory;
  };

  void* allocated(std::size_t bytes) {
    memory_.push_back(allocate(runtime_, bytes));
    return memory_.back().get();
  }

  const DeviceRuntime& runtime_;
  bool replay_;
  std::vector<DeviceMemory> memory_;
  std::vector<Output> outputs_;
  DeviceStream stream_;
};

class DeviceEngine final : public Engine {
 public:
  DeviceEngine(std::string_view name, const DeviceRuntime* runtime, PagedKernels kernels)
      : name_(name), runtime_(runtime), kernels_(kernels) {}

  std::string_view name() const override { return name_; }
  std::string_view says() const override {
    return name_ == "cuda" ? "on NVIDIA GPUs through CUDA" : "on AMD GPUs";
  }
  bool isolate() const override { return true; }
  Answer available() const override {
    if (runtime_ != nullptr) return runtime_->usable(0);
    return Answer::no("this binary was built without ATTEST_HIP=" + std::string(name_));
  }
  PagedKernels kernels() const override { return kernels_; }
  int multiprocessors(int device) const override { return info(device).multiprocessors; }
  std::string label(int device) const override {
    const DeviceInfo found = info(device);
    return found.name + " (" + std::string(name_) + ", " + found.architecture + ")";
  }
  std::unique_ptr<LaunchSession> session(const RunOptions& options) const override {
    return std::make_unique<DeviceSession>(*runtime_, options);
  }

 private:
  DeviceInfo info(int device) const {
    // Asked once: enumerating devices costs more than a small launch.
    std::call_once(asked_, [this] { devices_ = runtime_->devices(); });
    for (const DeviceInfo& found : devices_) {
      if (found.index == device) return found;
    }
    return {};
  }

  std::string_view name_;
  const DeviceRuntime* runtime_;
  PagedKernels kernels_;
  mutable std::once_flag asked_;
  mutable std::vector<DeviceInfo> devices_;
};

}  // namespace

std::unique_ptr<Engine> device_engine(std::string_view name) {
  if (name == "cuda") {
    return std::make_unique<DeviceEngine>("cuda", cuda_runtime(), paged_kernels_on_cuda());
  }
  return std::make_unique<DeviceEngine>("rocm", rocm_runtime(), paged_kernels_on_rocm());
}

}  // namespace attest::hip
