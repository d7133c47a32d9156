#include "property_tests/run_devices.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "contracts/verdict.hpp"
#include "property_tests/stub_backend.hpp"

namespace attest {
namespace {

/// A kernel on three devices, of which the last does not run it.
class ThreeDevices final : public StubBackend {
 public:
  int device_count() const override { return 3; }
  Answer has_device(int device) const override {
    if (device < 2) return {};
    return Answer::no(device == 2 ? "device 2 takes no such code" : "there is no such device");
  }
};

RunPlan plan_on(const Backend& backend, std::vector<int> devices) {
  RunPlan plan;
  plan.backends = {&backend};
  plan.count = 6;
  plan.max_kv = 16;
  plan.max_requests = 1;
  plan.devices = std::move(devices);
  return plan;
}

TEST(RunDevices, AreReadAsIndicesOrAll) {
  EXPECT_EQ(parse_devices("3"), std::vector<int>{3});
  EXPECT_EQ(parse_devices("0,2"), (std::vector<int>{0, 2}));
  EXPECT_TRUE(parse_devices("all").empty());
  for (const char* text : {"", "x", "1,", "-1", "1;2", "0,all", "1x"}) {
    EXPECT_THROW(parse_devices(text), std::invalid_argument) << text;
  }
}

TEST(RunDevices, TakeTheCasesInTurnAndSayWhichInTheReproLine) {
  ThreeDevices backend;
  std::map<std::uint64_t, std::set<int>> used;
  backend.after = [&](const TensorSource& source, const RunOptions& options, RunResult&) {
    used[source.seed()].insert(options.device);
  };
  RunPlan plan = plan_on(backend, {0, 1});
  plan.jobs = 1;
  struct Lines : RunObserver {
    void launches(const std::string& repro) override { lines.push_back(repro); }
    std::vector<std::string> lines;
  } heard;
  const RunSummary summary = run_cases(plan, {&heard});
  EXPECT_EQ(summary.tallies.at(0).cases(), 6);
  std::set<int> all;
  for (const auto& [seed, devices] : used) {
    EXPECT_EQ(devices.size(), 1U) << "both launches of a case run on one device";
    all.insert(devices.begin(), devices.end());
  }
  EXPECT_EQ(all, (std::set<int>{0, 1}));
  ASSERT_EQ(heard.lines.size(), 6U);
  for (std::size_t i = 0; i < heard.lines.size(); ++i) {
    const bool says = heard.lines[i].find("--device 1") != std::string::npos;
    EXPECT_EQ(says, i % 2 == 1) << heard.lines[i];
  }
}

TEST(RunDevices, AllOfThemMeansWhatTheBackendHas) {
  ThreeDevices backend;
  RunPlan plan = plan_on(backend, {});
  EXPECT_EQ(devices_of(plan, backend), std::vector<int>{0});
  plan.all_devices = true;
  EXPECT_EQ(devices_of(plan, backend), (std::vector<int>{0, 1, 2}));
  const StubBackend cpu;
  EXPECT_EQ(devices_of(plan, cpu), std::vector<int>{0});
}

TEST(RunDevices, ThatDoNotRunMakeTheBackendUnavailableWithTheReason) {
  ThreeDevices backend;
  EXPECT_EQ(can_run(plan_on(backend, {2}), backend).reason, "device 2 takes no such code");
  EXPECT_EQ(can_run(plan_on(backend, {0, 7}), backend).reason, "there is no such device");
  backend.stub_available = Answer::no("device 0 is broken");
  EXPECT_EQ(can_run(plan_on(backend, {0}), backend).reason, "device 0 is broken");
  EXPECT_TRUE(can_run(plan_on(backend, {1}), backend).yes) << "another one may run";
  const StubBackend cpu;
  EXPECT_NE(can_run(plan_on(cpu, {1}), cpu).reason.find("there is no device 1"), std::string::npos);

  const RunSummary summary = run_cases(plan_on(backend, {2}), {});
  EXPECT_EQ(summary.tallies.at(0).cases(), 0);
  EXPECT_EQ(summary.tallies.at(0).count(Verdict::unavailable), 1);
}

TEST(RunDevices, BackendsWithoutGraphsAreUnavailableWhereOneIsAskedFor) {
  StubBackend backend;
  RunPlan plan = plan_on(backend, {0});
  plan.run.graph = "short";
  EXPECT_NE(can_run(plan, backend).reason.find("no graphs"), std::string::npos);
  backend.stub_capabilities.graphs = true;
  EXPECT_TRUE(can_run(plan, backend).yes);
}

}  // namespace
}  // namespace attest
