#include <gtest/gtest.h>

#include <bit>
#include <cstdlib>
#include <iomanip>
#include <sstream>

#include "backends/amx/engine_lease.hpp"
#include "backends/registry.hpp"
#include "property_tests/generators.hpp"

namespace attest {
namespace {

/// Outputs of generated cases, seed 2, hashed element by element (FNV-1a over float bits): equal on
/// the CPU's tiles and on emulated ones. Recorded with the kernel's last change of arithmetic and
/// the generator's last change of cases (docs/amx.md says on which machines they were seen).
struct Recorded {
  Signature signature;
  const char* hash;
};
constexpr Recorded recorded[] = {{Signature::extend, "f9a2a320b4629125"},
                                 {Signature::decode, "77f230bf78489a25"}};
constexpr std::uint64_t cases = 1000;

std::string hex(std::uint64_t value) {
  std::ostringstream os;
  os << std::hex << std::setfill('0') << std::setw(16) << value;
  return os.str();
}

class AmxHash : public testing::TestWithParam<Recorded> {};

INSTANTIATE_TEST_SUITE_P(, AmxHash, testing::ValuesIn(recorded),
                         [](const auto& info) { return std::string(name(info.param.signature)); });

/// Runs on whatever engine this process has: ATTEST_AMX=patch shows the emulation's side.
TEST_P(AmxHash, OfAThousandOutputsIsTheRecordedOne) {
  const amx::Choice& choice = amx::process_engine();
  if (choice.engine == amx::Engine::off) GTEST_SKIP() << choice.reason;
  const std::string selector = "amx." + std::string(name(GetParam().signature)) + "@" +
                               std::string(amx::name(choice.engine));
  const Backend& backend = *select_backends(selector).front();
  std::uint64_t hash = 14695981039346656037ULL;
  std::uint64_t hashed = 0;
  for (std::uint64_t i = 0; i < cases; ++i) {
    const Capabilities& can = backend.capabilities();
    const Case c = generate(2, i, {.signature = can.signature, .capabilities = &can});
    const TensorSource source(c.problem, c.recipe, c.seed, c.poison);
    const auto call = call_of(c, source.slots());
    ASSERT_TRUE(std::holds_alternative<Call>(call)) << c.origin;
    const RunResult result = backend.run(std::get<Call>(call), source, {});
    ASSERT_FALSE(result.raised) << c.origin << ": " << *result.raised;
    for (const float value : result.out.values) {
      hash = (hash ^ std::bit_cast<std::uint32_t>(value)) * 1099511628211ULL;
    }
    ++hashed;
  }
  RecordProperty("engine", std::string(amx::name(choice.engine)));
  RecordProperty("hash", hex(hash));
  std::cout << selector << ": " << hashed << " outputs, hash " << hex(hash) << '\n';
  EXPECT_EQ(hex(hash), GetParam().hash) << "on " << selector;
}

}  // namespace
}  // namespace attest
