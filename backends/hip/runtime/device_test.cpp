#include "backends/hip/runtime/device.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "backends/hip/runtime/device_objects.hpp"

namespace attest::hip {
namespace {

using testing::HasSubstr;

/// Each test runs on each engine that this build has, and is skipped with the reason where there is
/// no device for it.
class DeviceTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    runtime_ = GetParam() == "cuda" ? cuda_runtime() : rocm_runtime();
    if (runtime_ == nullptr) GTEST_SKIP() << "this build has no engine " << GetParam();
    const Answer answer = runtime_->usable(0);
    if (!answer) GTEST_SKIP() << answer.reason;
    runtime_->use(0);
    stream_ = make_stream(*runtime_);
  }
  std::vector<std::uint32_t> read(const void* from, std::size_t words) {
    std::vector<std::uint32_t> values(words);
    runtime_->download(std::as_writable_bytes(std::span(values)), from, stream_.get());
    runtime_->synchronize(stream_.get());
    return values;
  }

  const DeviceRuntime* runtime_ = nullptr;
  DeviceStream stream_;
};

TEST_P(DeviceTest, ADeviceDescribesItself) {
  const std::vector<DeviceInfo> all = runtime_->devices();
  ASSERT_FALSE(all.empty());
  EXPECT_FALSE(all[0].name.empty());
  EXPECT_FALSE(all[0].architecture.empty());
  EXPECT_GT(all[0].multiprocessors, 0);
  EXPECT_GE(all[0].memory, runtime_->free_memory());
  EXPECT_GE(all[0].shared_per_block, 48U << 10);
  RecordProperty("device", all[0].name + ", " + all[0].architecture + ", " + runtime_->versions());
}

TEST_P(DeviceTest, BytesComeBackAsTheyWent) {
  constexpr std::size_t words = 1000;
  std::vector<std::uint32_t> values(words);
  for (std::size_t i = 0; i < words; ++i) values[i] = static_cast<std::uint32_t>(i * 2654435761U);
  const DeviceMemory a = allocate(*runtime_, words * 4);
  const DeviceMemory b = allocate(*runtime_, words * 4);
  runtime_->upload(a.get(), std::as_bytes(std::span(values)), stream_.get());
  runtime_->copy(b.get(), a.get(), words * 4, stream_.get());
  EXPECT_EQ(read(b.get(), words), values);
}

TEST_P(DeviceTest, FillStopsAtItsLastByte) {
  const DeviceMemory memory = allocate(*runtime_, 4096);
  runtime_->fill(memory.get(), 0, 4096, stream_.get());
  runtime_->fill(memory.get(), 0x7fc27fc2U, 1030, stream_.get());
  const std::vector<std::uint32_t> values = read(memory.get(), 1024);
  for (std::size_t i = 0; i < 257; ++i) ASSERT_EQ(values[i], 0x7fc27fc2U) << i;
  EXPECT_EQ(values[257], 0x7fc2U);
  for (std::size_t i = 258; i < 1024; ++i) ASSERT_EQ(values[i], 0U) << i;
}

TEST_P(DeviceTest, MemoryThatIsNotThereIsRefusedBeforeItIsAskedFor) {
  try {
    allocate(*runtime_, std::size_t{1} << 50);
    FAIL() << "a PiB was allocated";
  } catch (const DeviceError& error) {
    EXPECT_THAT(error.what(), HasSubstr("Malloc(1125899906842624) was not tried"));
  }
}

TEST_P(DeviceTest, AReplayedGraphDoesItsWorkAgain) {
  const DeviceMemory memory = allocate(*runtime_, 64);
  runtime_->fill(memory.get(), 1, 64, stream_.get());
  const DeviceGraph graph = capture(*runtime_, stream_.get(),
                                    [&] { runtime_->fill(memory.get(), 7, 64, stream_.get()); });
  EXPECT_THAT(read(memory.get(), 16), testing::Each(1U));  // captured, not run
  runtime_->replay(graph.get(), stream_.get());
  EXPECT_THAT(read(memory.get(), 16), testing::Each(7U));
  runtime_->fill(memory.get(), 2, 64, stream_.get());
  runtime_->replay(graph.get(), stream_.get());
  EXPECT_THAT(read(memory.get(), 16), testing::Each(7U));
}

TEST_P(DeviceTest, EventsTimeTheWorkBetweenThem) {
  constexpr std::size_t bytes = std::size_t{64} << 20;
  const DeviceMemory memory = allocate(*runtime_, bytes);
  const DeviceEvent begin = make_event(*runtime_);
  const DeviceEvent end = make_event(*runtime_);
  runtime_->record(begin.get(), stream_.get());
  runtime_->fill(memory.get(), 3, bytes, stream_.get());
  runtime_->record(end.get(), stream_.get());
  EXPECT_GT(runtime_->seconds_between(begin.get(), end.get()), 0);
}

TEST_P(DeviceTest, ADeviceThatIsNotThereIsNamedWithThoseThatAre) {
  try {
    runtime_->use(1000);
    FAIL() << "device 1000 was chosen";
  } catch (const DeviceError& error) {
    EXPECT_THAT(error.what(), HasSubstr("device 1000 was asked for; there are: 0 "));
  }
  EXPECT_FALSE(runtime_->usable(1000));
}

TEST_P(DeviceTest, AFailedCallIsReportedWithItsText) {
  try {
    runtime_->release(reinterpret_cast<void*>(std::uintptr_t{16}));
    FAIL() << "an address that nobody allocated was freed";
  } catch (const DeviceError& error) {
    EXPECT_THAT(error.what(), HasSubstr("Free(0x10): "));
    EXPECT_THAT(error.what(), HasSubstr("Error"));
  }
}

INSTANTIATE_TEST_SUITE_P(Hip, DeviceTest, testing::Values("cuda", "rocm"),
                         [](const auto& parameter) { return parameter.param; });

/// Where there is no device, the answer says why; this holds on every machine.
TEST(DeviceRuntimes, SayWhyTheyCannotRun) {
  for (const DeviceRuntime* runtime : {cuda_runtime(), rocm_runtime()}) {
    if (runtime == nullptr) continue;
    const Answer answer = runtime->usable(0);
    EXPECT_EQ(answer.yes, answer.reason.empty());
    EXPECT_FALSE(runtime->versions().empty());
    EXPECT_FALSE(runtime->architectures().empty());
    if (runtime->devices().empty()) {
      EXPECT_THAT(answer.reason,
                  testing::AnyOf(HasSubstr("no device"), HasSubstr("no permission")));
      EXPECT_THROW(runtime->use(0), DeviceError);
    }
  }
}

}  // namespace
}  // namespace attest::hip
