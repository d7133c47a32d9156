#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <optional>
#include <set>

#include "property_tests/every_backend.hpp"
#include "property_tests/rapidcheck_gen.hpp"
#include "property_tests/relations.hpp"

namespace attest {
namespace {

/// A relation as declared for one backend.
struct Cell {
  std::string relation, backend;
};

void PrintTo(const Cell& cell, std::ostream* os) { *os << cell.relation << " on " << cell.backend; }

/// Every honest kernel that runs in this process, so emulated AMX only as `patch`: the other
/// emulation is held to its bits elsewhere.
std::vector<Cell> cells() {
  std::vector<Cell> list;
  for (const std::string& backend : names_of("")) {
    if (backend.ends_with("@trap")) continue;
    for (const Relation& relation : all_relations()) {
      if (declared(relation, *select_backends(backend).front()) == nullptr) continue;
      list.push_back({std::string(relation.id), backend});
    }
  }
  return list;
}

class Relations : public testing::TestWithParam<Cell> {
 protected:
  const Backend& backend() const { return *select_backends(GetParam().backend).front(); }
  const Relation& relation() const { return *find_relation(GetParam().relation); }
  void SetUp() override {
    if (const Answer answer = backend().available(); !answer) GTEST_SKIP() << answer.reason;
  }
};

INSTANTIATE_TEST_SUITE_P(, Relations, testing::ValuesIn(cells()), [](const auto& info) {
  return info.param.relation + "_" + test_name_of({info.param.backend, info.index});
});

TEST_P(Relations, HoldAsDeclared) {
  const Declaration& cell = *declared(relation(), backend());
  int applied = 0;
  EXPECT_TRUE(holds(GetParam().relation.c_str(), [&] {
    std::optional<Twin> twin;
    for (int draws = 0; !twin && draws < 3; ++draws) {  // few cases have what some relations need
      const Case c = *any_case({.signature = backend().capabilities().signature,
                                .capabilities = &backend().capabilities(),
                                .max_kv = 160,
                                .max_requests = 4});
      twin = relation().twin(c, backend());
    }
    if (!twin) return;
    ++applied;
    const auto difference = broken(*twin, cell.holds, backend());
    if (difference) RC_FAIL(*difference);
  }));
  EXPECT_GT(applied, 0) << "the relation applied to no drawn case";
}

TEST(RelationTable, DeclaresKnownRelationsOnceWithAReasonWhereInexact) {
  std::set<std::pair<std::string_view, std::string_view>> seen;
  for (const Declaration& cell : all_declarations()) {
    EXPECT_NE(find_relation(cell.relation), nullptr) << cell.relation;
    EXPECT_TRUE(seen.emplace(cell.relation, cell.backend).second) << cell.relation;
    EXPECT_EQ(cell.reason.empty(), cell.holds == Holds::exactly) << cell.relation;
    EXPECT_FALSE(select_backends(cell.backend).empty()) << cell.backend;
  }
}

TEST(RelationTable, HasARowEachInTheDocumentation) {
  std::ifstream file(ATTEST_SOURCE_DIR "/docs/relations.md");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  for (const Relation& relation : all_relations()) {
    const std::string row =
        "| `" + std::string(relation.id) + "` | " + std::string(relation.says) + " |";
    EXPECT_NE(text.find(row), std::string::npos) << row;
  }
}

/// A relation that applies to a kernel must be declared for it.
TEST(RelationTable, LeavesNoRelationThatAppliesUndeclared) {
  for (const std::string& name : names_of("scalar,amx.extend@patch,amx.decode@patch")) {
    const Backend& backend = *select_backends(name).front();
    for (const Relation& relation : all_relations()) {
      if (declared(relation, backend) != nullptr) continue;
      for (std::uint64_t i = 0; i < 60; ++i) {
        const Case c = generate(3, i,
                                {.signature = backend.capabilities().signature,
                                 .capabilities = &backend.capabilities(),
                                 .max_kv = 100,
                                 .max_requests = 3});
        EXPECT_FALSE(relation.twin(c, backend))
            << relation.id << " on " << name << ": " << c.origin;
      }
    }
  }
}

/// Adds to one element whatever differs between any two runs: no relation may hold on it.
class Nosy final : public Backend {
 public:
  explicit Nosy(const Backend& inner) : inner_(inner) {}
  std::string_view name() const override { return inner_.name(); }
  std::string_view says() const override { return "counts its runs into its output"; }
  const Capabilities& capabilities() const override { return inner_.capabilities(); }
  const NumericsProfile& profile() const override { return inner_.profile(); }
  Answer available() const override { return {}; }
  Answer supports(const Call& call) const override { return inner_.supports(call); }
  RunResult run(const Call& call, const TensorSource& source,
                const RunOptions& options) const override {
    RunResult result = inner_.run(call, source, options);
    for (float& value : result.out.values) value += static_cast<float>(++runs_);
    return result;
  }

 private:
  const Backend& inner_;
  mutable int runs_ = 0;
};

TEST(RelationTable, CanFailInEveryCell) {
  for (const std::string& name : names_of("scalar")) {
    const Nosy nosy(*select_backends(name).front());
    for (const Relation& relation : all_relations()) {
      const Declaration* const cell = declared(relation, nosy);
      if (cell == nullptr) continue;
      bool failed = false;
      for (std::uint64_t i = 0; i < 400 && !failed; ++i) {
        const Case c = generate(4, i,
                                {.signature = nosy.capabilities().signature,
                                 .capabilities = &nosy.capabilities(),
                                 .max_kv = 60,
                                 .max_requests = 2});
        const auto twin = relation.twin(c, nosy);
        failed = twin && broken(*twin, cell->holds, nosy).has_value();
      }
      EXPECT_TRUE(failed) << relation.id << " on " << name;
    }
  }
}

}  // namespace
}  // namespace attest
