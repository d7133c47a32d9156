#include <algorithm>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "backends/hip/engine.hpp"
#include "backends/hip/runtime/device.hpp"
#include "backends/hip/runtime/device_objects.hpp"
#include "backends/hip/runtime/emulator.hpp"

namespace attest::hip {
namespace {

/// Bytes on both sides of every output; a kernel must leave them alone.
constexpr std::size_t guard_bytes = 256;
constexpr std::byte guard{0xa5};

class DeviceLaunches final : public LaunchGraph {
 public:
  DeviceLaunches(const DeviceRuntime& runtime, Stream stream,
                 const std::function<void(Stream)>& launches)
      : runtime_(runtime),
        stream_(stream),
        graph_(attest::hip::capture(runtime, stream, [&] { launches(stream); })) {}
  void replay() override {
    runtime_.replay(graph_.get(), stream_);
    runtime_.synchronize(stream_);  // the graph may go before the work is done
  }

 private:
  const DeviceRuntime& runtime_;
  Stream stream_;
  DeviceGraph graph_;
};

/// Copies of the host's buffers on one device.
class DeviceSession final : public LaunchSession {
 public:
  DeviceSession(const DeviceRuntime& runtime, const RunOptions& options) : runtime_(runtime) {
    runtime_.use(options.device);
    stream_ = make_stream(runtime_);
  }

  const void* input(std::span<const std::byte> bytes) override {
    void* const memory = allocated(std::max<std::size_t>(bytes.size(), 1));
    runtime_.upload(memory, bytes, stream_.get());
    return memory;
  }

  void* metadata(std::span<const std::byte> bytes) override {
    void* const memory = allocated(std::max<std::size_t>(bytes.size(), 1));
    write(memory, bytes);
    return memory;
  }

  void write(void* memory, std::span<const std::byte> bytes) override {
    runtime_.upload(memory, bytes, stream_.get());
    runtime_.synchronize(stream_.get());  // the bytes are the caller's
  }

  void read(std::span<std::byte> bytes, const void* memory) override {
    runtime_.download(bytes, memory, stream_.get());
    runtime_.synchronize(stream_.get());
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

  void run(const std::function<void(Stream)>& launches) override { launches(stream_.get()); }

  std::unique_ptr<LaunchGraph> capture(const std::function<void(Stream)>& launches) override {
    return std::make_unique<DeviceLaunches>(runtime_, stream_.get(), launches);
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
  std::vector<DeviceMemory> memory_;
  std::vector<Output> outputs_;
  DeviceStream stream_;
};

/// The engine name of AMD's emulator.
constexpr std::string_view emulated = "rocjitsu";

class DeviceEngine final : public Engine {
 public:
  DeviceEngine(std::string_view name, const DeviceRuntime* runtime, PagedKernels kernels)
      : name_(name), runtime_(runtime), kernels_(kernels) {}

  std::string_view name() const override { return name_; }
  std::string_view says() const override {
    if (name_ == emulated) return "on AMD's CPU emulator rocjitsu";
    return name_ == "cuda" ? "on NVIDIA GPUs through CUDA" : "on AMD GPUs";
  }
  bool isolate() const override { return true; }
  int device_count() const override { return static_cast<int>(devices().size()); }
  Answer usable(int device) const override {
    if (const Answer answer = right_engine(); !answer) return answer;
    if (runtime_ != nullptr) return runtime_->usable(device);
    return Answer::no(not_built(name_ == emulated ? "rocm" : name_));
  }
  PagedKernels kernels() const override { return kernels_; }
  int multiprocessors(int device) const override { return info(device).multiprocessors; }
  std::string label(int device) const override {
    const DeviceInfo found = info(device);
    const std::optional<Emulator>& emulator = emulator_here();
    if (name_ == emulated && emulator) return emulator->label(found.architecture);
    return found.name + " (" + std::string(name_) + ", " + found.architecture + ")";
  }
  std::unique_ptr<LaunchSession> session(const RunOptions& options) const override {
    return std::make_unique<DeviceSession>(*runtime_, options);
  }

 private:
  /// An emulator must not pass for a GPU, nor the other way round.
  Answer right_engine() const {
    if (name_ == "rocm" && emulator_here()) {
      return Answer::no("rocjitsu is loaded, an emulator that is no GPU: hip@rocjitsu");
    }
    if (name_ == emulated && !emulator_here()) {
      return Answer::no("not started under it: rocjitsu --config C -- attest run --backend " +
                        std::string("hip@rocjitsu"));
    }
    return {};
  }
  const std::vector<DeviceInfo>& devices() const {
    // Asked once: enumerating devices costs more than a small launch.
    std::call_once(asked_, [this] {
      if (runtime_ != nullptr) devices_ = runtime_->devices();
    });
    return devices_;
  }
  DeviceInfo info(int device) const {
    for (const DeviceInfo& found : devices()) {
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

std::string not_built(std::string_view engine) {
  const std::string name(engine);
  return "this binary was built without ATTEST_HIP=" + name + " (cmake --preset " + name +
         " && cmake --build --preset " + name + ")";
}

std::unique_ptr<Engine> device_engine(std::string_view name) {
  if (name == "cuda") {
    return std::make_unique<DeviceEngine>("cuda", cuda_runtime(), paged_kernels_on_cuda());
  }
  return std::make_unique<DeviceEngine>(name == emulated ? emulated : "rocm", rocm_runtime(),
                                        paged_kernels_on_rocm());
}

}  // namespace attest::hip
