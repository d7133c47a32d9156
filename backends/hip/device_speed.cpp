#include "backends/hip/device_speed.hpp"

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "backends/hip/engine.hpp"
#include "backends/hip/kernels/paged_launch.hpp"
#include "backends/hip/runtime/device.hpp"
#include "backends/hip/runtime/device_objects.hpp"

namespace attest::hip {
namespace {

constexpr std::int64_t cold_bytes = std::int64_t{400} << 20;  ///< several times any L2
constexpr std::int64_t most_tables = 300;
constexpr int replays = 25;

std::span<const std::byte> bytes_of(const auto& values) { return std::as_bytes(std::span(values)); }

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

/// Buffers of one shape and `tables` block tables, each with pages of its own.
class SpeedCase {
 public:
  SpeedCase(const DeviceRuntime& runtime, const SpeedShape& shape, Stream stream)
      : runtime_(runtime), stream_(stream), shape_(shape) {
    tables_ = std::clamp((cold_bytes + shape.kv_bytes() - 1) / shape.kv_bytes(), std::int64_t{1},
                         most_tables);
    pages_each_ = (shape.keys + shape.page_size - 1) / shape.page_size;
    set_rows();
    set_pools();
    set_indices();
  }

  std::int64_t tables() const { return tables_; }

  void set_splits(int splits) {
    args_.splits = splits;
    const auto parts = static_cast<std::size_t>(args_.total_rows * shape_.q_heads * splits);
    const auto columns = static_cast<std::size_t>(shape_.head_dim);
    args_.part_out = static_cast<float*>(memory(parts * columns * sizeof(float)));
    args_.part_stats = static_cast<float*>(memory(parts * 2 * sizeof(float)));
  }

  void launch(const PagedKernels& kernels, int row_groups, std::int64_t table) const {
    PagedArgs args = args_;
    args.table.data = static_cast<const std::int32_t*>(args.table.data) +
                      table * shape_.batch * args.table_stride;
    kernels.bf16(stream_, args, row_groups);
  }

 private:
  void* memory(std::size_t bytes) {
    memory_.push_back(allocate(runtime_, (bytes + 15) / 16 * 16));
    return memory_.back().get();
  }
  template <class Value>
  const Value* uploaded(const std::vector<Value>& values) {
    void* const to = memory(values.size() * sizeof(Value));
    runtime_.upload(to, bytes_of(values), stream_);
    return static_cast<const Value*>(to);
  }

  void set_rows() {
    const std::int64_t rows = shape_.batch * shape_.q_len;
    const auto size = static_cast<std::size_t>(rows * shape_.q_heads * shape_.head_dim * 2);
    args_.total_rows = rows;
    args_.q = {memory(size), shape_.q_heads * shape_.head_dim, shape_.head_dim};
    args_.out = {memory(size), shape_.q_heads * shape_.head_dim, shape_.head_dim};
    runtime_.fill(args_.q.data, 0x3d803d80U, size, stream_);  // 0.0625
    args_.num_q_heads = static_cast<std::int32_t>(shape_.q_heads);
    args_.num_kv_heads = static_cast<std::int32_t>(shape_.kv_heads);
    args_.head_dim = args_.v_head_dim = static_cast<std::int32_t>(shape_.head_dim);
    args_.page_size = static_cast<std::int32_t>(shape_.page_size);
    args_.vectors = args_.q_vectors = 1;
    args_.scale = 0.088F;
  }

  /// Random bits of ordinary magnitude, repeated: constant bytes would cost less power.
  void set_pools() {
    std::mt19937 random(1);
    std::vector<std::uint16_t> values(std::size_t{1} << 22);
    for (std::uint16_t& value : values) {
      const auto bits = static_cast<std::uint32_t>(random());
      value = static_cast<std::uint16_t>((bits & 0x80ffU) | 0x3f00U);  // +-[0.5, 2)
    }
    const std::int64_t slot = shape_.kv_heads * shape_.head_dim;
    const auto size = static_cast<std::size_t>(tables_ * shape_.batch * pages_each_ *
                                               shape_.page_size * slot * 2);
    for (PoolArgs* pool : {&args_.k, &args_.v}) {
      auto* const base = static_cast<std::byte*>(memory(size));
      for (std::size_t at = 0; at < size; at += values.size() * 2) {
        const std::size_t count = std::min(values.size() * 2, size - at);
        if (at == 0) {
          runtime_.upload(base, bytes_of(values).first(count), stream_);
        } else {
          runtime_.copy(base + at, base, count, stream_);
        }
      }
      *pool = {base, shape_.page_size * slot, slot, shape_.head_dim};
    }
  }

  void set_indices() {
    std::vector<std::int32_t> pages(static_cast<std::size_t>(tables_ * shape_.batch * pages_each_));
    std::iota(pages.begin(), pages.end(), 0);
    std::shuffle(pages.begin(), pages.end(), std::mt19937(2));
    args_.table = {uploaded(pages), 0};
    args_.table_stride = pages_each_;
    std::vector<std::int32_t> first_rows;
    for (std::int64_t i = 0; i <= shape_.batch; ++i) {
      first_rows.push_back(static_cast<std::int32_t>(i * shape_.q_len));
    }
    args_.first_rows = uploaded(first_rows);
    args_.batch = static_cast<std::int32_t>(shape_.batch);
    const std::vector<std::int64_t> lengths(static_cast<std::size_t>(shape_.batch), shape_.keys);
    args_.lengths = {uploaded(lengths), 1};
  }

  const DeviceRuntime& runtime_;
  Stream stream_;
  SpeedShape shape_;
  std::int64_t tables_ = 1, pages_each_ = 1;
  std::vector<DeviceMemory> memory_;
  PagedArgs args_;
};

class Speed final : public DeviceSpeed {
 public:
  Speed(const DeviceRuntime& runtime, PagedKernels kernels, DeviceInfo info)
      : runtime_(runtime), kernels_(kernels), info_(std::move(info)) {
    runtime_.use(info_.index);
    stream_ = make_stream(runtime_);
  }

  std::string device() const override { return info_.name + ", " + runtime_.versions(); }

  Route route(const SpeedShape& shape) const override {
    RouteInput input;
    input.batch = shape.batch;
    input.total_rows = shape.batch * shape.q_len;
    input.max_seqlen_q = shape.q_len;
    input.max_seqlen_k = shape.keys;
    input.group = shape.q_heads / shape.kv_heads;
    input.num_kv_heads = shape.kv_heads;
    input.multiprocessors = info_.multiprocessors;
    return choose_route(input);
  }

  double seconds(const SpeedShape& shape, const Route& route) override {
    SpeedCase speed_case(runtime_, shape, stream_.get());
    speed_case.set_splits(route.splits);
    const auto launches = [&] {
      for (std::int64_t table = 0; table < speed_case.tables(); ++table) {
        speed_case.launch(kernels_, route.row_groups, table);
      }
    };
    launches();
    runtime_.synchronize(stream_.get());
    const DeviceGraph graph = capture(runtime_, stream_.get(), launches);
    return timed(replays, [&] { runtime_.replay(graph.get(), stream_.get()); }) /
           static_cast<double>(speed_case.tables());
  }

  double copy_bandwidth() override {
    const std::size_t bytes = std::size_t{1} << 30;
    const DeviceMemory from = allocate(runtime_, bytes);
    const DeviceMemory to = allocate(runtime_, bytes);
    runtime_.fill(from.get(), 0x12345678U, bytes, stream_.get());
    const auto copy = [&] { runtime_.copy(to.get(), from.get(), bytes, stream_.get()); };
    copy();
    return 2 * static_cast<double>(bytes) / timed(replays, copy);
  }

 private:
  template <class Work>
  double timed(int times, Work&& work) {
    const DeviceEvent begin = make_event(runtime_);
    const DeviceEvent end = make_event(runtime_);
    std::vector<double> seconds;
    for (int i = 0; i < times; ++i) {
      runtime_.record(begin.get(), stream_.get());
      work();
      runtime_.record(end.get(), stream_.get());
      seconds.push_back(runtime_.seconds_between(begin.get(), end.get()));
    }
    return median(std::move(seconds));
  }

  const DeviceRuntime& runtime_;
  PagedKernels kernels_;
  DeviceInfo info_;
  DeviceStream stream_;
};

}  // namespace

std::string SpeedShape::text() const {
  return std::to_string(q_heads) + ":" + std::to_string(kv_heads) + " batch " +
         std::to_string(batch) + " kv " + std::to_string(keys) + " page " +
         std::to_string(page_size);
}

std::unique_ptr<DeviceSpeed> device_speed(std::string_view engine, std::string& reason) {
  const bool cuda = engine == "cuda";
  const DeviceRuntime* const runtime = cuda ? cuda_runtime() : rocm_runtime();
  if (runtime == nullptr) {
    reason = not_built(engine);
    return nullptr;
  }
  if (const Answer answer = runtime->usable(0); !answer) {
    reason = answer.reason;
    return nullptr;
  }
  return std::make_unique<Speed>(*runtime, cuda ? paged_kernels_on_cuda() : paged_kernels_on_rocm(),
                                 runtime->devices().front());
}

}  // namespace attest::hip
