#include "backends/worker/protocol.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "backends/scalar/scalar_cases.hpp"
#include "backends/worker/call_image.hpp"

namespace attest {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

template <class Action>
std::string refusal(Action&& action) {
  try {
    action();
  } catch (const BackendError& error) {
    return error.what();
  }
  return "it was taken";
}

constexpr const char* good = R"({"attest": 1, "name": "x.unified@cpu", "version": "2",
  "capabilities": {"signature": "unified", "q_dtypes": ["bf16"], "kv_dtypes": ["f16"],
                   "window": true, "page_sizes": [16]},
  "profile": {"p_dtype": "f32", "z_limit": {"normal": 1.5}}})";

std::string with(const std::string& old, const std::string& replacement) {
  std::string text = good;
  text.replace(text.find(old), old.size(), replacement);
  return text;
}

std::string refused(const std::string& reply) {
  return refusal([&] { description_from(reply, "./x.so"); });
}

TEST(WorkerProtocol, ReadsADescription) {
  const Description d = description_from(good, "./x.so");
  EXPECT_EQ(d.name, "x.unified@cpu");
  EXPECT_TRUE(d.available);
  EXPECT_EQ(d.capabilities.signature, Signature::unified);
  EXPECT_EQ(d.capabilities.kv_dtypes, std::vector{Dtype::f16});
  EXPECT_TRUE(d.capabilities.window);
  EXPECT_FALSE(d.capabilities.softcap) << "what is not claimed is off";
  EXPECT_TRUE(d.capabilities.isolate);
  EXPECT_EQ(d.capabilities.page_sizes, std::vector<std::int64_t>{16});
  EXPECT_EQ(d.profile.p_dtype, Dtype::f32);
  EXPECT_EQ(d.profile.version, "2");
  EXPECT_EQ(d.profile.z_limit.at("normal"), 1.5);
}

TEST(WorkerProtocol, OfAnotherVersionIsRefusedWithBothVersions) {
  EXPECT_EQ(refused(with("1,", "3,")),
            "./x.so speaks version 3 of the worker protocol, this attest version 1");
}

TEST(WorkerProtocol, GivesAWorkersOwnErrorUnderItsName) {
  EXPECT_EQ(refused(R"({"attest": 1, "error": "no such device"})"), "./x.so: no such device");
  EXPECT_EQ(refused(R"({"attest": 1, "error": "./x.so: no symbol"})"), "./x.so: no symbol");
}

TEST(WorkerProtocol, NamesTheMemberThatIsWrong) {
  EXPECT_THAT(refused("hello"), AllOf(StartsWith("./x.so: "), HasSubstr("no JSON object")));
  EXPECT_THAT(refused(with("\"bf16\"", "\"int64\"")), HasSubstr("/capabilities/q_dtypes"));
  EXPECT_THAT(refused(with("\"unified\"", "\"united\"")), HasSubstr("/capabilities/signature"));
  EXPECT_THAT(refused(with("\"window\"", "\"windows\"")), HasSubstr("/capabilities/windows"));
  EXPECT_THAT(refused(with("\"x.unified@cpu\"", R"("x\u001b[2J\n.unified@cpu")")),
              HasSubstr("/name: \"x\\x1b[2J\\n.unified@cpu\" has bytes of no name"));
  EXPECT_THAT(refused(with("true", "1")), HasSubstr("/capabilities/window"));
  EXPECT_THAT(refused(with("[16]", "[0]")), HasSubstr("/capabilities/page_sizes"));
  EXPECT_THAT(refused(with("p_dtype", "q_dtype")), HasSubstr("/q_dtype"));
  EXPECT_THAT(refused(with("x.unified@cpu", "x")), StartsWith("./x.so: "));
  EXPECT_THAT(refused(with("\"version\": \"2\",", "")), HasSubstr("/version"));
}

TEST(WorkerProtocol, WantsAReasonWithANo) {
  EXPECT_THAT(refused(with("\"version\"", "\"available\": false, \"version\"")),
              HasSubstr("/reason"));
  const Description d = description_from(
      with("\"version\"", "\"available\": false, \"reason\": \"pip\", \"version\""), "./x.so");
  EXPECT_EQ(d.available.reason, "pip");
}

TEST(WorkerProtocol, ReadsWhatARunLeft) {
  const RunReply ran = run_reply_from(
      R"({"attest": 1, "engine": "H200", "form": "3d", "counters": {"launches": 2}, "lints": ["x"]})",
      "w");
  EXPECT_EQ(ran.kind, RunReply::Kind::ran);
  EXPECT_EQ(ran.engine, "H200");
  EXPECT_EQ(ran.counters.at("launches"), 2);
  EXPECT_EQ(run_reply_from(R"({"attest": 1, "engine": "", "lost": "gone"})", "w").kind,
            RunReply::Kind::lost);
  EXPECT_THAT(refusal([] { run_reply_from(R"({"attest": 1})", "w"); }), HasSubstr("engine"));
}

TEST(WorkerProtocol, FindsTheTextOfAnAliveFrame) {
  EXPECT_EQ(alive_text(R"({"alive": "compiling"})"), "compiling");
  EXPECT_EQ(alive_text("{}"), "");
}

/// A call, and what a well-behaved worker may do with its image.
struct Imaged {
  explicit Imaged(const ScalarCase& c)
      : source(c.problem, c.recipe, 3),
        call(call_of(c, source)),
        image(call, source, 0),
        bytes(image.bytes()) {
    image.write(bytes);
  }
  const TensorArgument& tensor(const std::string& name) const {
    for (const Argument& argument : image.arguments()) {
      if (argument.name == name) return std::get<TensorArgument>(argument.value);
    }
    throw std::invalid_argument(name);
  }
  std::vector<std::string> damage() {
    RunResult result;
    image.collect(bytes, result);
    return result.damage;
  }
  TensorSource source;
  Call call;
  CallImage image;
  std::vector<std::byte> bytes;
};

TEST(CallImage, LeavesNoDamageWhereNothingWasTouched) {
  for (const ScalarCase& c : scalar_cases()) {
    Imaged imaged(c);
    EXPECT_THAT(imaged.damage(), testing::IsEmpty());
  }
}

TEST(CallImage, PutsEveryTensorInsideItsGuards) {
  for (const ScalarCase& c : scalar_cases()) {
    const Imaged imaged(c);
    for (const Argument& argument : imaged.image.arguments()) {
      const auto* tensor = std::get_if<TensorArgument>(&argument.value);
      if (!tensor) continue;
      EXPECT_GE(tensor->at - tensor->first, 256) << argument.name;
      EXPECT_LE(tensor->end, static_cast<std::int64_t>(imaged.bytes.size())) << argument.name;
    }
  }
}

/// Kernels that return their output too: a plugin has nowhere else to leave it.
TEST(CallImage, HasAnOutputForEverySignature) {
  for (const ScalarCase& c : scalar_cases()) {
    Imaged imaged(c);
    RunResult result;
    imaged.image.collect(imaged.bytes, result);
    EXPECT_EQ(result.out.rows, c.problem.total_new_tokens()) << c.name;
    EXPECT_EQ(result.out.dim, c.problem.model.v_head_dim) << c.name;
  }
}

TEST(CallImage, FindsAByteChangedInFrontOfAnyTensor) {
  for (const ScalarCase& c : scalar_cases()) {
    const Imaged names(c);
    for (const Argument& argument : names.image.arguments()) {
      const auto* tensor = std::get_if<TensorArgument>(&argument.value);
      if (!tensor) continue;
      Imaged imaged(c);
      imaged.bytes[static_cast<std::size_t>(tensor->at) - 1] ^= std::byte{0x10};
      EXPECT_EQ(imaged.damage().size(), 1U) << argument.name;
    }
  }
}

/// Two kv heads, so that a cache with tokens before heads would show.
ScalarCase vllm_case() {
  ScalarCase c{"vllm_cpu", Signature::vllm_cpu, {}};
  Problem& p = c.problem;
  p.model.num_q_heads = 4;
  p.model.num_kv_heads = 2;
  p.model.q_dtype = p.model.kv_dtype = p.model.out_dtype = Dtype::f32;
  p.model.sinks = true;
  p.pool.num_pages = 8;
  p.requests = {{.sequence = 7, .committed = 20, .new_tokens = 2}};
  p.mode = Mode::target_verify;
  return c;
}

TEST(CallImage, HasHeadsBeforeTokensInTheCachesOfVllm) {
  const ScalarCase c = vllm_case();
  const Imaged imaged(c);
  const auto row_at = [&](const std::string& name, std::int64_t page, std::int64_t head,
                          std::int64_t token) {
    const TensorArgument& cache = imaged.tensor(name);
    const std::int64_t element =
        page * cache.meta.stride(0) + head * cache.meta.stride(1) + token * cache.meta.stride(2);
    const auto from = imaged.bytes.begin() + cache.at + 4 * element;
    return std::vector<std::byte>(from, from + std::ptrdiff_t{4} * 64);
  };
  std::vector<std::byte> k(std::size_t{4} * 64), v(k.size());
  for (std::int64_t t = 0; t < 22; ++t) {
    const std::int64_t slot = imaged.source.slots().slot(0, t);
    for (const std::int64_t head : {0, 1}) {
      imaged.source.k_row({7, t}, head, k);
      imaged.source.v_row({7, t}, head, v);
      EXPECT_EQ(row_at("key_cache", slot / 16, head, slot % 16), k) << t << ", " << head;
      EXPECT_EQ(row_at("value_cache", slot / 16, head, slot % 16), v) << t << ", " << head;
    }
  }
}

TEST(CallImage, HasTheSinksOfVllm) {
  const Imaged imaged(vllm_case());
  for (std::int64_t head = 0; head < 4; ++head) {
    float sink = 0;
    std::memcpy(&sink, imaged.bytes.data() + imaged.tensor("s_aux").at + 4 * head, sizeof sink);
    EXPECT_EQ(sink, imaged.source.sink(head)) << head;
  }
}

}  // namespace
}  // namespace attest
