#include "property_tests/isolated_backend.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <limits>
#include <thread>

#include "contracts/resource_error.hpp"
#include "property_tests/judge.hpp"
#include "property_tests/run_wire.hpp"
#include "property_tests/stub_backend.hpp"

// This program is its own worker: started with "worker" it answers launches of the stubs below.

namespace attest {
namespace {

using testing::AnyOf;
using testing::HasSubstr;
using namespace std::chrono_literals;

StubBackend isolated_stub(const char* name) {
  StubBackend stub;
  stub.stub_name = name;
  stub.stub_capabilities.isolate = true;
  return stub;
}

std::vector<StubBackend> stubs() {
  std::vector<StubBackend> all;
  all.push_back(isolated_stub("honest.unified@cpu"));
  all.push_back(isolated_stub("crashing.unified@cpu"));
  all.back().after = [](const TensorSource&, const RunOptions&, RunResult&) {
    std::raise(SIGSEGV);
  };
  all.push_back(isolated_stub("hanging.unified@cpu"));
  all.back().after = [](const TensorSource&, const RunOptions&, RunResult&) {
    std::this_thread::sleep_for(60s);
  };
  all.push_back(isolated_stub("throwing.unified@cpu"));
  all.back().after = [](const TensorSource&, const RunOptions&, RunResult&) {
    throw BackendError("device lost");
  };
  all.push_back(isolated_stub("nan.unified@cpu"));
  all.back().after = [](const TensorSource&, const RunOptions&, RunResult& result) {
    result.out.values[0] = std::bit_cast<float>(0x7fc30000U);
    result.out.lse = {1.5F};
    result.lints = {"a lint"};
    result.damage = {"some damage"};
    result.counters["kv_bytes"] = 12;
  };
  return all;
}

const Backend& stub(std::string_view name) {
  static const std::vector<StubBackend> all = stubs();
  for (const StubBackend& backend : all) {
    if (backend.name().starts_with(name)) return backend;
  }
  throw std::invalid_argument(std::string(name));
}

const std::vector<std::string> this_program = {"/proc/self/exe", "worker"};

JudgeOptions quick() {
  JudgeOptions options;
  options.worker = this_program;
  options.time_limit = 5s;
  return options;
}

TEST(Isolation, GivesTheResultOfARunInThisProcess) {
  const Judgement here = judge(verify_case(), StubBackend::inner());
  const Judgement there = judge(verify_case(), stub("honest"), quick());
  EXPECT_EQ(there.verdict, Verdict::pass) << there.reason;
  EXPECT_EQ(there.worst_over_bound, here.worst_over_bound);
  EXPECT_EQ(there.form, here.form);
  EXPECT_EQ(there.counters, here.counters);
}

TEST(Isolation, TurnsASignalIntoTheVerdictOfThatCaseAlone) {
  for (int i = 0; i < 2; ++i) {
    const Judgement j = judge(verify_case(), stub("crashing"), quick());
    EXPECT_EQ(j.verdict, Verdict::crashed);
    // A sanitizer turns the signal into a report of its own.
    EXPECT_THAT(j.reason, AnyOf(HasSubstr("signal 11"), HasSubstr("Sanitizer: SEGV")));
    EXPECT_EQ(judge(verify_case(), stub("honest"), quick()).verdict, Verdict::pass);
  }
}

TEST(Isolation, TurnsSilenceIntoHung) {
  JudgeOptions options = quick();
  options.time_limit = 300ms;
  const Judgement j = judge(verify_case(), stub("hanging"), options);
  EXPECT_EQ(j.verdict, Verdict::hung);
  EXPECT_THAT(j.reason, HasSubstr("300 ms"));
  EXPECT_EQ(judge(verify_case(), stub("honest"), quick()).verdict, Verdict::pass);
}

TEST(Isolation, CarriesWhatTheBackendThrew) {
  const Judgement j = judge(verify_case(), stub("throwing"), quick());
  EXPECT_EQ(j.verdict, Verdict::crashed);
  EXPECT_EQ(j.reason, "device lost");
}

TEST(Isolation, NamesAWorkerThatCannotBeStarted) {
  JudgeOptions options = quick();
  options.worker = {"/no/such/attest", "worker"};
  // The harness's own failure is not blamed on the kernel.
  try {
    (void)judge(verify_case(), stub("honest"), options);
    FAIL() << "judged without a worker";
  } catch (const ResourceError& error) {
    EXPECT_THAT(error.what(), HasSubstr("/no/such/attest"));
  }
}

TEST(Isolation, KeepsTheBitsOfNaNsAndEveryNote) {
  const Case c = verify_case();
  const TensorSource source(c.problem, c.recipe, c.seed);
  const Call call = std::get<Call>(call_of(c, make_slot_map(c.problem)));
  const IsolatedBackend isolated(stub("nan"), this_program, 5s);
  const RunResult result = isolated.run(call, source, {.sentinel = 1, .kv_splits = 2});
  EXPECT_EQ(std::bit_cast<std::uint32_t>(result.out.values[0]), 0x7fc30000U);
  EXPECT_EQ(result.out.lse, std::vector<float>{1.5F});
  EXPECT_EQ(result.lints, std::vector<std::string>{"a lint"});
  EXPECT_EQ(result.damage, std::vector<std::string>{"some damage"});
  EXPECT_EQ(result.counters.at("kv_bytes"), 12);
  EXPECT_EQ(result.form, StubBackend::inner().run(call, source, {.kv_splits = 2}).form);
}

TEST(Isolation, GivesEachThreadAWorkerOfItsOwn) {
  std::vector<Verdict> verdicts(4);
  std::vector<std::thread> threads;
  for (Verdict& verdict : verdicts) {
    threads.emplace_back([&verdict] {
      JudgeOptions options = quick();
      options.time_limit = 20s;
      verdict = judge(verify_case(), stub("honest"), options).verdict;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(verdicts, testing::Each(Verdict::pass));
}

TEST(RunWire, CarriesARequestUnchanged) {
  Case c = verify_case();
  const TensorSource source(c.problem, Recipe::recall, ~0ULL, {Poison::loud, true});
  const Call call = std::get<Call>(call_of(c, make_slot_map(c.problem)));
  const RunOptions options = {.sentinel = 1,
                              .form = "3d",
                              .kv_splits = 4,
                              .threads = 2,
                              .thread_order = "random:7",
                              .device = 3,
                              .graph = "short"};
  const RunRequest back = decode_request(encode_request("x.unified@y", call, source, options));
  EXPECT_EQ(back.backend, "x.unified@y");
  EXPECT_EQ(back.problem, c.problem);
  EXPECT_EQ(back.recipe, Recipe::recall);
  EXPECT_EQ(back.seed, ~0ULL);
  EXPECT_EQ(back.poison, (PoisonPlan{Poison::loud, true}));
  EXPECT_EQ(back.call, call);
  EXPECT_EQ(back.options, options);
}

TEST(RunWire, QuotesAWordThatNamesNoRecipe) {
  Case c = verify_case();
  const TensorSource source(c.problem, Recipe::recall, 1, {});
  const Call call = std::get<Call>(call_of(c, make_slot_map(c.problem)));
  std::string bytes = encode_request("x", call, source, {});
  const std::size_t at = bytes.find("recall");
  ASSERT_NE(at, std::string::npos);
  bytes.replace(at, 6, "recoil");
  try {
    decode_request(bytes);
    FAIL() << "it was accepted";
  } catch (const BackendError& error) {
    EXPECT_EQ(std::string(error.what()), "worker request: recipe = \"recoil\" names nothing");
  }
}

TEST(RunWire, SaysWhatTheWorkerRanOutOf) {
  try {
    decode_result(encode_shortage(EMFILE, "memfd_create of the poison"));
    FAIL() << "it was taken for a result";
  } catch (const ResourceError& error) {
    EXPECT_EQ(error.code().value(), EMFILE);
    EXPECT_EQ(error.place(), "worker: memfd_create of the poison");
  }
}

TEST(RunWire, RefusesBytesThatAreNoMessage) {
  EXPECT_THROW(decode_request("{}"), BackendError);
  EXPECT_THROW(decode_request("not json"), BackendError);
  EXPECT_THROW(decode_result(""), BackendError);
  EXPECT_THROW(decode_result(std::string(8, '\xff')), BackendError);
  RunResult result;
  result.out.values = {1, 2, 3};
  const std::string whole = encode_result(result);
  EXPECT_EQ(decode_result(whole).out.values, result.out.values);
  EXPECT_THROW(decode_result(whole.substr(0, whole.size() - 1)), BackendError);
}

/// How emulated engines run on a CPU that has tiles: in `attest worker`, which never asks for them.
TEST(IsolatedAmx, GivesTheBitsOfTheSameProcess) {
  const Backend& inner = *select_backends("amx.decode@patch").front();
  if (!inner.available()) GTEST_SKIP() << inner.available().reason;
  Case c = verify_case();
  c.signature = Signature::decode;
  c.problem.mode = Mode::decode;
  c.problem.num_draft_tokens.reset();
  for (Request& request : c.problem.requests) request.new_tokens = 1;
  const TensorSource source(c.problem, c.recipe, c.seed);
  const Call call = std::get<Call>(call_of(c, source.slots()));
  const IsolatedBackend isolated(inner, {ATTEST_BINARY, "worker"}, 60s);
  const RunResult apart = isolated.run(call, source, {});
  EXPECT_EQ(apart.engine, "patch");
  EXPECT_GT(apart.counters.at("tile_dots"), 0);
  if (inner.capabilities().isolate) GTEST_SKIP() << "this process may not emulate";
  EXPECT_EQ(apart.out.values, inner.run(call, source, {}).out.values);
}

}  // namespace

int answer_launches(int fd) {
  const std::vector<StubBackend> all = stubs();
  std::vector<const Backend*> backends;
  for (const StubBackend& backend : all) backends.push_back(&backend);
  return worker_main(fd, backends);
}

}  // namespace attest

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "worker") == 0) {
    return attest::answer_launches(std::atoi(argv[2]));
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
