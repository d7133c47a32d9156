#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "backends/plugin/plugin_host.hpp"
#include "backends/worker/python_workers.hpp"
#include "backends/worker/worker_errors.hpp"
#include "contracts/resource_error.hpp"
#include "property_tests/run.hpp"
#include "property_tests/stub_backend.hpp"

// Runs of kernels in other processes: what one bad case costs, and what ends a run.

namespace attest {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using namespace std::chrono_literals;

/// Verdicts that are no pass, in order.
struct BadVerdicts : RunObserver {
  std::vector<Verdict> seen;
  std::vector<std::string> reasons;
  void judged(const CaseResult& result, const BackendTally&) override {
    const Verdict verdict = result.judgement.verdict;
    if (verdict == Verdict::pass || verdict == Verdict::unsupported) return;
    seen.push_back(verdict);
    reasons.push_back(result.judgement.reason);
  }
};

RunPlan plan_of(const Backend& backend, std::int64_t cases) {
  RunPlan plan;
  plan.backends = {&backend};
  plan.count = cases;
  plan.max_kv = 40;
  plan.max_requests = 2;
  plan.max_saved = 0;
  plan.time_limit = 3s;
  plan.jobs = 1;
  return plan;
}

TEST(ForeignRun, OneFaultAndOneHangAmongAThousandCasesAreTwoBadVerdicts) {
  const auto counter =
      std::filesystem::temp_directory_path() / ("attest-launches-" + std::to_string(getpid()));
  std::filesystem::remove(counter);
  setenv("ATTEST_TEST_LAUNCHES", counter.c_str(), 1);
  setenv("ATTEST_TEST_PLUGIN", "fails_twice", 1);
  const auto backend = load_plugin(ATTEST_TEST_PLUGIN_FILE, ATTEST_BINARY);
  BadVerdicts bad;
  const RunSummary summary = run_cases(plan_of(*backend, 1000), {&bad});
  unsetenv("ATTEST_TEST_PLUGIN");
  const auto launches = std::filesystem::file_size(counter);
  std::filesystem::remove(counter);
  EXPECT_FALSE(summary.error);
  EXPECT_EQ(summary.tallies.front().cases(), 1000);
  EXPECT_EQ(bad.seen, (std::vector{Verdict::crashed, Verdict::hung}));
  EXPECT_GT(launches, 1900U) << "the cases after them ran";
}

/// A worker in Python for tests of its own failures: `body` sees the request and answers.
class ScriptedWorker {
 public:
  explicit ScriptedWorker(const std::string& body)
      : file_(std::filesystem::temp_directory_path() /
              ("attest-scripted-" + std::to_string(getpid()) + ".py")) {
    std::ofstream(file_) << "import json, os, socket, struct, sys, time\n"
                            "s = socket.socket(fileno=int(sys.argv[-1]))\n"
                            "def reply(o):\n"
                            "  p = json.dumps(o).encode()\n"
                            "  s.sendall(struct.pack('<4sIQ', b'ATST', 1, len(p)) + p)\n"
                            "while True:\n"
                            "  h = s.recv(16, socket.MSG_WAITALL)\n"
                            "  if not h: break\n"
                            "  n = struct.unpack('<4sIQ', h)[2]\n"
                            "  r = json.loads(s.recv(n, socket.MSG_WAITALL))\n"
                            "  hello = dict(attest=1, name='s.unified@cpu', version='1',\n"
                            "    capabilities=dict(signature='unified', q_dtypes=['bf16'],\n"
                            "                      kv_dtypes=['bf16']))\n"
                            "  yes = dict(attest=1, yes=True, reason='')\n"
                            "  ran = dict(attest=1, engine='')\n"
                         << body;
  }
  ~ScriptedWorker() { std::filesystem::remove(file_); }
  WorkerCommand command() const { return {{"python3", file_.string()}, "scripted", ""}; }

 private:
  std::filesystem::path file_;
};

bool has_python() { return std::system("python3 -c ''") == 0; }

RunResult run_verify_case(const Backend& backend) {
  const Case c = verify_case();
  const TensorSource source(c.problem, c.recipe, c.seed);
  return backend.run(std::get<Call>(call_of(c, source.slots())), source, {.time_limit = 2s});
}

/// The text of what `action` throws, under the name of its kind.
template <class Action>
std::string thrown(Action&& action) {
  try {
    action();
  } catch (const WorkerHung& error) {
    return std::string("hung: ") + error.what();
  } catch (const WorkerCrashed& error) {
    return std::string("crashed: ") + error.what();
  } catch (const ResourceError& error) {
    return std::string("machine: ") + error.what();
  } catch (const BackendError& error) {
    return std::string("backend: ") + error.what();
  }
  return "nothing";
}

TEST(ForeignWorker, OfAnotherProtocolIsRefusedWithBothVersions) {
  if (!has_python()) GTEST_SKIP() << "no python3";
  const ScriptedWorker worker("  reply({'attest': 2, 'name': 'later'})\n");
  EXPECT_EQ(thrown([&] { describe_kernel(worker.command()); }),
            "backend: scripted speaks version 2 of the worker protocol, this attest version 1");
}

TEST(ForeignWorker, ThatIsKilledInACaseIsThatCasesVerdict) {
  if (!has_python()) GTEST_SKIP() << "no python3";
  const ScriptedWorker worker(
      "  if r['ask'] == 'run': os.kill(os.getpid(), 9)\n"
      "  reply(hello if r['ask'] == 'hello' else yes)\n");
  const ForeignBackend backend(worker.command(), describe_kernel(worker.command()));
  EXPECT_THAT(thrown([&] { run_verify_case(backend); }),
              AllOf(testing::StartsWith("crashed: "), HasSubstr("signal 9")));
}

TEST(ForeignWorker, ThatHangsIsToldWithWhatItLastSaid) {
  if (!has_python()) GTEST_SKIP() << "no python3";
  const ScriptedWorker worker(
      "  if r['ask'] == 'run': reply({'alive': 'compiling'}); print('tile 3', flush=True); "
      "time.sleep(60)\n"
      "  reply(hello if r['ask'] == 'hello' else yes)\n");
  const ForeignBackend backend(worker.command(), describe_kernel(worker.command()));
  EXPECT_THAT(thrown([&] { run_verify_case(backend); }),
              AllOf(testing::StartsWith("hung: no reply within 2000 ms"),
                    HasSubstr("after it said: compiling"), HasSubstr("it last wrote: tile 3")));
}

TEST(ForeignWorker, ThatLostItsDeviceIsReplacedBeforeTheNextCase) {
  if (!has_python()) GTEST_SKIP() << "no python3";
  const ScriptedWorker worker(
      "  cases = globals().get('cases', 0) + (r['ask'] == 'run')\n"
      "  ran['lints'] = ['process ' + str(os.getpid())]\n"
      "  if r['ask'] == 'run' and r['case'] == 0: ran['lost'] = 'illegal memory access'\n"
      "  reply(hello if r['ask'] == 'hello' else ran)\n");
  const ForeignBackend backend(worker.command(), describe_kernel(worker.command()));
  EXPECT_EQ(thrown([&] { run_verify_case(backend); }),
            "crashed: the device was lost: illegal memory access");
  EXPECT_EQ(run_verify_case(backend).lints.size(), 1U);
}

TEST(ForeignWorker, ThatDoesNotComeBackEndsTheRunWithTheReason) {
  if (!has_python()) GTEST_SKIP() << "no python3";
  const ScriptedWorker good("  reply(hello)\n");
  const Description described = describe_kernel(good.command());
  const ScriptedWorker gone("  reply(dict(hello, available=False, reason='the driver says no'))\n");
  const ForeignBackend backend(gone.command(), described);
  EXPECT_THAT(
      thrown([&] { run_verify_case(backend); }),
      AllOf(testing::StartsWith("machine: s.unified@cpu: no process of it answers, tried 3"),
            HasSubstr("the driver says no")));
}

bool imports_numpy(const std::string& python) {
  return std::system((python + " -c 'import numpy' 2>/dev/null").c_str()) == 0;
}

/// numpy, where an interpreter has it: the one that is asked for, else the system's.
const Backend* numpy() {
  setenv("ATTEST_WORKER", ATTEST_SOURCE_DIR "/scripts/attest_worker.py", 0);
  if (!imports_numpy("python3") && imports_numpy("/usr/bin/python3")) {
    setenv("ATTEST_PYTHON", "/usr/bin/python3", 0);
  }
  for (const ForeignBackend& backend : python_workers().backends) {
    if (backend.name() == "numpy.unified@cpu") return &backend;
  }
  return nullptr;
}

TEST(PythonWorker, PassesOnNumpyAndIsCaughtWithAWrongCall) {
  const Backend* const backend = numpy();
  if (!backend) GTEST_SKIP() << python_workers().why_none;
  if (!backend->available()) GTEST_SKIP() << backend->available().reason;
  BadVerdicts bad;
  const RunSummary summary = run_cases(plan_of(*backend, 60), {&bad});
  EXPECT_THAT(bad.reasons, testing::IsEmpty());
  EXPECT_GT(summary.tallies.front().cases(), 0);
  Case c = verify_case();
  c.fault = "seqused_k_short_by_one";
  JudgeOptions options;
  options.rules = RulesMode::off;
  EXPECT_EQ(judge(c, *backend, options).verdict, Verdict::mismatch);
}

}  // namespace
}  // namespace attest
