#include "property_tests/large_kv.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <fstream>
#include <iterator>
#include <map>
#include <set>

#include "backends/faulty/wrap_faults.hpp"
#include "property_tests/every_backend.hpp"
#include "property_tests/judge.hpp"

namespace attest {
namespace {

using testing::HasSubstr;

const Backend& backend_named(std::string_view name) {
  return *select_backends(std::string(name)).front();
}

JudgeOptions quick(const LargeKvCell& cell) {
  JudgeOptions options;
  options.rules = RulesMode::report;
  options.run.form = cell.form;
  options.reference_threads = 1;
  options.both_poisons = false;
  return options;
}

/// The first cell that satisfies `wanted`.
template <class Wanted>
std::pair<LargeKvCell, std::uint64_t> cell_of(const Backend& backend, Wanted&& wanted) {
  const auto cells = large_kv_cells(backend.capabilities());
  const auto found = std::find_if(cells.begin(), cells.end(), wanted);
  EXPECT_NE(found, cells.end()) << backend.name();
  if (found == cells.end()) return {};
  return {*found, static_cast<std::uint64_t>(found - cells.begin())};
}

TEST(LargeKvCells, CoverEveryBoundarySideAndDtypeOnce) {
  const auto cells = large_kv_cells(backend_named("hip.unified@host").capabilities());
  std::set<std::string> names;
  std::map<std::string, int> by;
  for (const LargeKvCell& cell : cells) {
    EXPECT_TRUE(names.insert(cell.name()).second) << cell.name();
    ++by[std::string(name(cell.by))];
  }
  // (4 + 2 + 4 boundaries of bf16, fp8, f32) x 3 sides x 4 dtypes of indices, twice for two forms
  EXPECT_EQ(by["page_ids"], 10 * 3 * 4 * 2);
  EXPECT_EQ(by["strides"], 10 * 3 * 4 * 2);
  EXPECT_EQ(by["view"], 10 * 3 * 4);
  EXPECT_EQ(by["decoys"], 10 * 4);
}

TEST(LargeKvCells, GetWhereTheyAimOnEverySignature) {
  for (const char* const name : {"scalar.unified", "scalar.extend", "scalar.decode",
                                 "scalar.mla_decode", "amx.extend@patch", "hip.unified@host"}) {
    const auto cells = large_kv_cells(backend_named(name).capabilities());
    ASSERT_FALSE(cells.empty()) << name;
    std::uint64_t index = 0;
    for (const LargeKvCell& cell : cells) {
      const Case c = case_of(cell, index++);
      EXPECT_EQ(not_reached(*c.aim, *c.call), std::nullopt) << cell.name();
    }
  }
}

/// Distances between live bytes that a lost upper bit would hide.
TEST(LargeKvCells, KeepLivePagesApartModulo32BitsUnlessTheyAreDecoys) {
  const auto cells = large_kv_cells(backend_named("hip.unified@host").capabilities());
  for (const LargeKvCell& cell : cells) {
    const Case c = case_of(cell, 0);
    const auto& call = std::get<UnifiedCall>(*c.call);
    std::set<std::uint32_t> lower;
    bool coincide = false;
    const SlotMap slots = make_slot_map(c.problem);
    for (const auto& pages : slots.pages) {
      for (const std::int64_t page : pages) {
        coincide |= !lower.insert(static_cast<std::uint32_t>(page * call.k.stride(0))).second;
      }
    }
    const auto bytes = static_cast<std::int64_t>(size_bytes(cell.kv_dtype));
    const bool apart_by_2_32 = cell.aim.boundary.element(bytes) == std::int64_t{1} << 32;
    EXPECT_EQ(coincide, cell.by == LargeKvBy::decoys && apart_by_2_32) << cell.name();
  }
}

TEST(LargeKvCells, AreUntrustedWhereTheCallDoesNotGetThere) {
  const Backend& backend = backend_named("scalar.unified");
  const auto [cell, index] =
      cell_of(backend, [](const LargeKvCell& c) { return c.aim.side == Side::above; });
  Case c = small_twin_of(cell, index);
  c.aim = cell.aim;
  const Judgement judgement = judge(c, backend, quick(cell));
  EXPECT_EQ(judgement.verdict, Verdict::untrusted);
  EXPECT_THAT(judgement.reason, HasSubstr("the case aims above 2^31 bytes in k, but the call"));
}

/// Both orders in one process: a launch chosen for the small pool must not serve the large one.
class HonestOnLargePools : public EveryBackend {};
INSTANTIATE_TEST_SUITE_P(, HonestOnLargePools,
                         testing::Values("scalar.unified@cpu", "scalar.extend@cpu",
                                         "scalar.decode@cpu", "scalar.mla_decode@cpu",
                                         "hip.unified@host", "hip.mla_decode@host",
                                         "amx.extend@patch", "amx.decode@patch",
                                         "amx.extend@native", "amx.decode@native"),
                         test_name_of);

TEST_P(HonestOnLargePools, GiveTheBitsOfASmallPoolBeforeAndAfterIt) {
  if (backend().capabilities().isolate) {
    GTEST_SKIP() << "runs in a process of its own here, and one process is what this is about";
  }
  const auto cells = large_kv_cells(backend().capabilities());
  for (std::uint64_t i = 0; i < cells.size(); i += 7) {
    const LargeKvCell& cell = cells[i];
    RunOptions options;
    options.form = cell.form;
    const auto output_of = [&](const Case& c) {
      const TensorSource source(c.problem, c.recipe, c.seed, c.poison);
      const RunResult result = backend().run(*c.call, source, options);
      EXPECT_FALSE(result.raised) << *result.raised;
      EXPECT_TRUE(result.stray_reads.empty()) << cell.name();
      std::vector<std::uint32_t> bits;
      for (const float value : result.out.values)
        bits.push_back(std::bit_cast<std::uint32_t>(value));
      return bits;
    };
    const Case small = small_twin_of(cell, i);
    const Case large = case_of(cell, i);
    const auto first = output_of(small);
    EXPECT_EQ(first, output_of(large)) << cell.name();
    EXPECT_EQ(first, output_of(small)) << cell.name();
  }
}

bool is_caught(const Judgement& judgement) {
  return judgement.verdict == Verdict::mismatch || judgement.verdict == Verdict::crashed;
}

bool is_past(const Boundary& reached, const Boundary& wrapped) {
  // Of two-byte elements: 2^31 bytes, 2^32 bytes = 2^31 elements, 2^32 elements.
  const auto byte_bits = [](const Boundary& b) {
    return b.bits + (b.unit == OffsetUnit::elements ? 1 : 0);
  };
  return byte_bits(reached) >= byte_bits(wrapped);
}

/// Every wrap on every kernel of this machine against every boundary: caught from its own on, and
/// not before, so each boundary of the lattice is needed.
class WrapFaults : public EveryBackend {};
std::vector<std::string> on_this_cpu() {
  std::vector<std::string> names = names_of("faulty-wrap");
  std::erase_if(names, [](const std::string& name) {
    return name.ends_with("@cuda") || name.ends_with("@rocm") || name.ends_with("@native");
  });
  return names;
}
INSTANTIATE_TEST_SUITE_P(, WrapFaults, testing::ValuesIn(on_this_cpu()), test_name_of);

TEST_P(WrapFaults, AreCaughtFromTheirBoundaryOn) {
  const WrapFault& fault = *wrap_fault_of(backend());
  for (const Boundary& boundary : all_boundaries()) {
    const auto [cell, index] = cell_of(backend(), [&](const LargeKvCell& c) {
      return c.by == LargeKvBy::page_ids && c.kv_dtype == Dtype::bf16 &&
             c.aim == Crossing{c.aim.operand, boundary, Side::straddling} &&
             c.table_dtype == Dtype::int32;
    });
    const Judgement judgement = judge(case_of(cell, index), backend(), quick(cell));
    EXPECT_EQ(is_caught(judgement), is_past(boundary, fault.boundary))
        << cell.name() << ": " << name(judgement.verdict) << ' ' << judgement.reason;
    if (boundary == fault.boundary && fault.model.kind != WrapKind::descriptor) {
      EXPECT_THAT(judgement.diagnosis, HasSubstr("wrapped at " + name(fault.boundary)))
          << judgement.reason;
    }
  }
}

TEST(WrapFaultDiagnosis, NamesTheModulusThePageAndWhereItWasRead) {
  const Backend& backend = backend_named("faulty-wrap-bytes_int32.unified@host");
  const auto [cell, index] = cell_of(backend, [](const LargeKvCell& c) {
    return c.aim.side == Side::above && c.aim.boundary == Boundary{31, OffsetUnit::bytes};
  });
  const Judgement judgement = judge(case_of(cell, index), backend, quick(cell));
  // 349,527 pages of 6,144 bytes are 2^31 + 10,240.
  EXPECT_EQ(judgement.diagnosis,
            "offset of K wrapped at 2^31 bytes: page 349,527 read at -2,147,473,408");
}

TEST(WrapFaultDiagnosis, FindsAliasesOnLivePagesByTheirNumbers) {
  const Backend& backend = backend_named("faulty-wrap-bytes_uint32.unified@host");
  const auto [cell, index] = cell_of(backend, [](const LargeKvCell& c) {
    return c.by == LargeKvBy::decoys && c.aim.boundary == Boundary{32, OffsetUnit::bytes};
  });
  const Judgement judgement = judge(case_of(cell, index), backend, quick(cell));
  EXPECT_EQ(judgement.verdict, Verdict::mismatch);
  EXPECT_THAT(judgement.diagnosis, HasSubstr("offset of K wrapped at 2^32 bytes: page 1,048,577 "
                                             "read at 4,096"));
}

TEST(WrapFaultDiagnosis, SaysThatADescriptorLeftARowOfZeros) {
  const Backend& backend = backend_named("faulty-wrap-descriptor.unified@host");
  const auto [cell, index] = cell_of(backend, [](const LargeKvCell& c) {
    return c.aim.side == Side::above && c.aim.boundary == Boundary{31, OffsetUnit::bytes};
  });
  const Judgement judgement = judge(case_of(cell, index), backend, quick(cell));
  EXPECT_EQ(judgement.verdict, Verdict::mismatch);
  EXPECT_THAT(judgement.diagnosis, HasSubstr("is all zero: its keys lie past 2^31 - 2 bytes"));
}

TEST(WrapFaultTable, IsTheOneInTheDocumentation) {
  std::ifstream file(ATTEST_SOURCE_DIR "/docs/large_kv.md");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  for (const WrapFault& fault : all_wrap_faults()) {
    EXPECT_THAT(text, HasSubstr("| `" + std::string(fault.id) + "` | " + std::string(fault.says) +
                                " | " + name(fault.boundary) + " |"));
  }
}

/// The lattice itself, as `attest run --profile large-kv` judges it.
TEST_P(HonestOnLargePools, PassEveryCellOfTheLattice) {
  const auto cells = large_kv_cells(backend().capabilities());
  std::uint64_t index = 0;
  for (const LargeKvCell& cell : cells) {
    JudgeOptions options = quick(cell);
    options.both_poisons = true;
    const Judgement judgement = judge(case_of(cell, index++), backend(), options);
    EXPECT_EQ(judgement.verdict, Verdict::pass) << cell.name() << ": " << judgement.reason;
  }
}

}  // namespace
}  // namespace attest
