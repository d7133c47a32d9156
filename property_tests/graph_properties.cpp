#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "backends/hip/graph_faults.hpp"
#include "property_tests/every_backend.hpp"
#include "property_tests/generators.hpp"
#include "property_tests/relations.hpp"

namespace attest {
namespace {

constexpr std::string_view graph_relations[] = {"graph_replays_longer", "graph_replays_shorter",
                                                "graph_replays_padded", "graph_after_eager"};
constexpr std::uint64_t enough = 60;  // cases

const hip::GraphFaultRow& row_of(std::string_view id) {
  for (const hip::GraphFaultRow& row : hip::all_graph_faults()) {
    if (row.id == id) return row;
  }
  throw std::logic_error("no graph fault " + std::string(id));
}

std::vector<std::string> ids() {
  std::vector<std::string> list;
  for (const hip::GraphFaultRow& row : hip::all_graph_faults()) list.emplace_back(row.id);
  return list;
}

/// A case of the stream that has a replay, or nothing.
std::optional<Case> case_at(std::uint64_t index, const Backend& backend) {
  Case c = generate(6, index,
                    {.signature = Signature::unified,
                     .capabilities = &backend.capabilities(),
                     .max_kv = 160,
                     .max_requests = 3});
  c.problem.path = Path::replay;
  if (problem_error(c.problem)) return std::nullopt;
  return c;
}

/// What is wrong, damage included, or nothing.
std::optional<std::string> difference(const Twin& twin, const Backend& backend) try {
  return broken(twin, Holds::exactly, backend);
} catch (const std::runtime_error& error) {
  return error.what();
}

class GraphFaults : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(, GraphFaults, testing::ValuesIn(ids()),
                         [](const auto& info) { return info.param; });

TEST_P(GraphFaults, AreToldByAGraphRelation) {
  const auto backend = hip::graph_fault_backend(row_of(GetParam()));
  for (std::uint64_t i = 0; i < enough; ++i) {
    const auto c = case_at(i, *backend);
    if (!c) continue;
    for (const std::string_view id : graph_relations) {
      const auto twin = find_relation(id)->twin(*c, *backend);
      if (!twin) continue;
      const auto why = difference(*twin, *backend);
      if (!why) continue;
      std::cout << "case " << i << ", " << id << ": " << *why << '\n';
      return;
    }
  }
  FAIL() << "told by none of " << enough << " cases";
}

/// Otherwise something else than the graph would be wrong.
TEST_P(GraphFaults, AreRightWithoutAGraphAndWhereTheCallIsTheCaptured) {
  const auto backend = hip::graph_fault_backend(row_of(GetParam()));
  int compared = 0;
  for (std::uint64_t i = 0; i < 5; ++i) {
    const auto c = case_at(i, *backend);
    if (!c || (GetParam() == "padding_takes_lane_0" && !c->problem.requests.back().live)) continue;
    const Twin twin{.left = {{*c, {}}}, .right = {{*c, {.graph = "same"}}}, .whole = true};
    EXPECT_EQ(difference(twin, *backend), std::nullopt) << c->origin;
    ++compared;
  }
  EXPECT_GT(compared, 0);
}

/// The same kernel and launcher without a fault.
TEST(GraphFaultTable, BlamesNoLauncherWithoutOne) {
  const auto honest = hip::graph_fault_backend({.id = "none", .says = "nothing"});
  for (std::uint64_t i = 0; i < 5; ++i) {
    const auto c = case_at(i, *honest);
    if (!c) continue;
    for (const std::string_view id : graph_relations) {
      const auto twin = find_relation(id)->twin(*c, *honest);
      if (!twin) continue;
      EXPECT_EQ(difference(*twin, *honest), std::nullopt) << id << ' ' << c->origin;
    }
  }
}

TEST(GraphFaultTable, IsTheOneInTheDocumentation) {
  std::ifstream file(ATTEST_SOURCE_DIR "/docs/hip.md");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  for (const hip::GraphFaultRow& row : hip::all_graph_faults()) {
    const std::string line = "| `" + std::string(row.id) + "` | " + std::string(row.says) + " | " +
                             std::string(row.source) + " |";
    EXPECT_NE(text.find(line), std::string::npos) << line;
  }
}

TEST(GraphWords, ThatSayNothingAreRefusedByName) {
  const Backend& backend = *select_backends("hip.unified@host").front();
  const Case c = generate(1, 0,
                          {.signature = Signature::unified,
                           .capabilities = &backend.capabilities(),
                           .max_kv = 20,
                           .max_requests = 1});
  for (const char* words : {"longer", "eager", "short,same", "short,,eager", "short,"}) {
    const Twin twin{.left = {{c, {.graph = words}}}, .right = {{c, {}}}};
    try {
      broken(twin, Holds::exactly, backend);
      ADD_FAILURE() << words;
    } catch (const BackendError& error) {
      EXPECT_NE(std::string(error.what()).find("no graph '" + std::string(words) + "'"),
                std::string::npos)
          << error.what();
    }
  }
}

}  // namespace
}  // namespace attest
