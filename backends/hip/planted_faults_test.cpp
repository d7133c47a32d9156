#include "backends/hip/planted_faults.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>

#include "backends/hip/hip_cases.hpp"

namespace attest::hip {
namespace {

struct Shown {
  std::string name;
  Problem problem;
  Recipe recipe = Recipe::normal;
};

/// Cases on which a fault of the kernel can show, besides those that all backends share.
std::vector<Shown> special_cases() {
  const Problem plain = hip_case(Signature::unified, "Plain").problem;
  std::vector<Shown> list;
  Shown large{"LargePool", plain};
  large.problem.pool.placement = Placement::high;
  large.problem.pool.num_pages = (std::int64_t{1} << 32) / (16 * 2 * 64) + 64;
  list.push_back(large);
  Shown low{"LowLogits", plain};
  for (Request& r : low.problem.requests) r.committed = 0;
  low.problem.model.softmax_scale = 30;
  list.push_back(low);
  Shown beyond{"BeyondTheCap", hip_case(Signature::unified, "Softcap").problem, Recipe::features};
  beyond.problem.model.softmax_scale = 300;
  list.push_back(beyond);
  Shown odd{"OddGroup", plain};
  odd.problem.model.num_q_heads = 10;
  list.push_back(odd);
  Shown roomy{"RoomBehindThePages", plain};
  roomy.problem.pool.k.page = 16 * 2 * 64 + 128;
  list.push_back(roomy);
  Shown windowed_sinks{"SinksUnderAWindow", hip_case(Signature::unified, "Sinks").problem,
                       Recipe::features};
  windowed_sinks.problem.model.window = 40;
  list.push_back(windowed_sinks);
  return list;
}

/// The special ones first: some faults show on nothing else.
std::vector<ScalarCase> cases() {
  std::vector<ScalarCase> list;
  for (const Shown& shown : special_cases()) {
    list.push_back({shown.name, Signature::unified, shown.problem, shown.recipe});
  }
  for (const ScalarCase& c : hip_cases()) {
    const Model& m = c.problem.model;
    const bool bf16 = m.q_dtype == Dtype::bf16 && m.kv_dtype == Dtype::bf16;
    if (c.signature == Signature::unified && bf16) list.push_back(c);
  }
  return list;
}

/// Calls that no correct caller makes: what a fault of the kernel does to them must show as well.
/// All have rows of q that no request has.
enum class Made { padded, with_a_stale_maximum, with_rows_before_the_first_key };

UnifiedCall made(UnifiedCall call, Made how) {
  if (how == Made::with_a_stale_maximum) call.max_seqlen_k = 1;
  if (how == Made::with_rows_before_the_first_key) call.seqused_k.values.back() = 0;
  for (TensorMeta* meta : {&call.q, &call.out}) {
    *meta = contiguous(meta->dtype, {meta->size(0) + 2, meta->size(1), meta->size(2)});
  }
  return call;
}

class PlantedFaults : public testing::TestWithParam<std::string> {
 protected:
  static const PlantedFaultRow& row() {
    const auto all = all_planted_faults();
    return *std::find_if(all.begin(), all.end(),
                         [](const PlantedFaultRow& row) { return row.id == GetParam(); });
  }
};

std::vector<std::string> ids() {
  std::vector<std::string> list;
  for (const PlantedFaultRow& row : all_planted_faults()) list.emplace_back(row.id);
  return list;
}
INSTANTIATE_TEST_SUITE_P(Kernel, PlantedFaults, testing::ValuesIn(ids()),
                         [](const auto& info) { return info.param; });

TEST_P(PlantedFaults, DifferFromTheKernelWithoutThem) {
  const auto honest = faulty_hip_backend({.id = "none", .says = "nothing"});
  const auto faulty = faulty_hip_backend(row());
  const auto differ = [&](const ScalarCase& c, const PoisonPlan& poison, Made how) {
    const TensorSource source(c.problem, c.recipe, 11, poison);
    const UnifiedCall call = made(std::get<UnifiedCall>(call_of(c, source)), how);
    const RunResult right = honest->run(call, source, {});
    EXPECT_FALSE(right.raised) << *right.raised;
    EXPECT_TRUE(right.damage.empty()) << right.damage.front();
    return !same_bits(right, faulty->run(call, source, {}));
  };
  for (const Made how :
       {Made::padded, Made::with_a_stale_maximum, Made::with_rows_before_the_first_key}) {
    for (const Poison poison : {Poison::nan, Poison::loud}) {
      for (const ScalarCase& c : cases()) {
        if (differ(c, {.poison = poison, .nan_in_v_tail = true}, how)) return;
      }
    }
  }
  FAIL() << "the fault changes nothing on any case";
}

TEST(PlantedFaultTable, NamesEveryFaultOnceWithASourceAndASentence) {
  std::set<std::string_view> names;
  std::set<PlantedFault> faults;
  for (const PlantedFaultRow& row : all_planted_faults()) {
    EXPECT_TRUE(names.insert(row.id).second) << row.id;
    EXPECT_TRUE(faults.insert(row.fault).second) << row.id;
    EXPECT_FALSE(row.says.empty() || row.shows.empty() || row.source.empty()) << row.id;
  }
  EXPECT_EQ(faults.size(), static_cast<std::size_t>(planted_fault_count - 1));  // but `none`
}

TEST(PlantedFaultTable, IsTheOneInTheDocumentation) {
  std::ifstream file(ATTEST_SOURCE_DIR "/docs/hip_kernels.md");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  for (const PlantedFaultRow& row : all_planted_faults()) {
    EXPECT_NE(text.find("| `" + std::string(row.id) + "` | " + std::string(row.says) + " |"),
              std::string::npos)
        << row.id;
  }
}

}  // namespace
}  // namespace attest::hip
