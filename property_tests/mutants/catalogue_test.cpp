#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "backends/faulty/faults.hpp"
#include "contracts/rules.hpp"
#include "property_tests/metadata_faults.hpp"
#include "property_tests/mutants/later_mutants.hpp"
#include "property_tests/mutants/mutant.hpp"
#include "property_tests/report/explain.hpp"

namespace attest {
namespace {

// Every public bug that the project set out with.
constexpr const char* ids[] = {
    "aiter-2517-srd-size",        "aiter-4774-zero-logits",   "sgl-20389-qo-indptr",
    "sgl-36541-seqused-i32",      "sgl-40351-store-page",     "syv-86-verify-split",
    "vllm-47671-mla-page-mul",    "sgl-26512-fa-extent",      "sgl-36430-amx-decode",
    "sgl-36430-amx-extend",       "vllm-32312-stale-maxlen",  "vllmascend-14883-rejected",
    "livllm-233-frozen-qlen",     "sgl-27545-qo-stride",      "sgl-31221-fixed-draft",
    "vllm-31693-nonuniform",      "fi-1654-lastpage-i64",     "b12x-24-rowslot",
    "fla-1029-nondivisible",      "llama-19115-gqa-pow2",     "sgl-30105-expand",
    "fa-2550-varlen-paged-split", "fi-4382-causal-extent",    "ov-38034-partitions",
    "rocmlir-2371-empty-split",   "tinygrad-18009-chunkcap",  "gaudi-1395-block-floor",
    "ik-2186-swa-tail",           "sgl-26513-swa-prefix",     "sgl-34273-extra-key",
    "sgl-38756-no-window-arg",    "vllm-30887-v-outside",     "vllm-34570-vheloop0",
    "ik-2087-tile-sink",          "imp-1346-reduce-null",     "vmetal-550-sink-dead",
    "fi-350-cap-after-mask",      "sgl-38525-plan-cap",       "vmetal-665-cap-const",
    "aiter-3894-shuffle-scale",   "fi-1023-positional",       "sgl-26852-vfallback",
    "sgl-34765-mla-scale",        "vllm-56726-stale-scale",   "fi-1008-mask-oob",
    "fi-1028-mask-stuck",         "sgl-33127-mask-reuse",     "sgl-37120-stale-true",
    "xf-1185-lost-causal",        "aiter-2720-nonpow2",       "aiter-4964-fold",
    "vllm-31282-lastpage",        "vllm-45227-meta-qlen1",    "fi-4016-pad-cta",
    "sgl-25529-raw-loc",          "vllm-27114-kernel-choice", "vllm-53384-capture-grid",
    "fi-1533-skip-write",         "hf-46765-trash-slot",      "sgl-22958-pad-stale",
    "sgl-25180-amx-bn",           "fa-2374-v-tail",           "vllm-936-pa-nan",
    "aiter-3498-contig",          "ck-1649-table-oob",        "sgl-25556-mla-page",
    "sgl-27360-scatter-oob",      "sgl-35985-context-wall",   "tgi-2711-slots",
    "onednn-5717-ktail",          "vllm-45466-out-align",     "fi-4647-maxlen-bits",
    "llama-28108-width",          "sgl-30105-no-split",       "vllm-51995-3d-gate",
    "sgl-20220-softmax-max"};

TEST(HandedBugs, AreTheListEachOnce) {
  const std::set<std::string> wanted(std::begin(ids), std::end(ids));
  ASSERT_EQ(wanted.size(), 76U);
  std::set<std::string> found;
  for (const HandedBug& bug : all_handed_bugs()) {
    EXPECT_TRUE(found.insert(std::string(bug.id)).second) << bug.id;
    EXPECT_FALSE(bug.source.empty() || bug.says.empty() || bug.kernels.empty()) << bug.id;
  }
  EXPECT_EQ(found, wanted);
}

/// Text of every C++ file of attest's own tests.
const std::string& test_sources() {
  static const std::string text = [] {
    std::string all;
    for (const char* const folder : {"backends", "property_tests"}) {
      const std::string root = std::string(ATTEST_SOURCE_DIR "/") + folder;
      for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
        if (!entry.path().string().ends_with("_test.cpp")) continue;
        std::ifstream file(entry.path());
        all.append(std::istreambuf_iterator<char>(file), {});
      }
    }
    return all;
  }();
  return text;
}

/// "Suite.Name" is a test of attest.
bool is_a_test(std::string_view name) {
  const std::size_t dot = name.find('.');
  const std::string words =
      "(" + std::string(name.substr(0, dot)) + ", " + std::string(name.substr(dot + 1)) + ")";
  return test_sources().find(words) != std::string::npos;
}

bool exists(std::string_view stand) {
  const std::size_t colon = stand.find(':');
  if (stand.starts_with("rule:") && find_rule(stand.substr(colon + 1)) == nullptr) return false;
  if (stand.starts_with("test:")) return is_a_test(stand.substr(colon + 1));
  const auto all = all_mutants();
  return std::any_of(all.begin(), all.end(), [&](const Mutant& m) { return means(stand, m); });
}

TEST(HandedBugs, HaveStandInsThatExistOrAReason) {
  for (const HandedBug& bug : all_handed_bugs()) {
    for (const std::string_view stand : stands_of(bug)) {
      EXPECT_TRUE(exists(stand)) << bug.id << ": " << stand;
    }
    if (stands_of(bug).empty()) {
      EXPECT_EQ(bug.kind, BugClass::outside) << bug.id;
      EXPECT_FALSE(bug.why.empty()) << bug.id;
    }
    const bool by_numbers = bug.kind == BugClass::numeric || bug.kind == BugClass::trace ||
                            bug.kind == BugClass::relation;
    EXPECT_TRUE(by_numbers || !bug.why.empty()) << bug.id;
  }
}

TEST(StandIns, AreMeantByTheirWholeNameOrABeginningOfIt) {
  const Mutant mutant{.name = "faulty-stale_page.unified@cpu"};
  EXPECT_TRUE(means("faulty-stale_page.unified@cpu", mutant));
  EXPECT_TRUE(means("faulty-stale_page", mutant));
  EXPECT_FALSE(means("faulty-stale", mutant));
  EXPECT_FALSE(means("stale_page", mutant));
  EXPECT_FALSE(exists("faulty-no_such_fault"));
  EXPECT_FALSE(exists("rule:no.such_rule"));
  EXPECT_FALSE(exists("test:No.SuchTest"));
}

TEST(Mutants, AreManyEachOnceWithASource) {
  std::set<std::string> names;
  for (const Mutant& mutant : all_mutants()) {
    EXPECT_TRUE(names.insert(mutant.name).second) << mutant.name;
    EXPECT_FALSE(mutant.source.empty()) << mutant.name;
    const bool has_backend = mutant.kind == MutantKind::kernel ||
                             mutant.kind == MutantKind::graph ||
                             mutant.kind == MutantKind::relation;
    EXPECT_EQ(mutant.backend != nullptr, has_backend) << mutant.name;
    if (!mutant.elsewhere.empty()) {
      EXPECT_TRUE(is_a_test(mutant.elsewhere)) << mutant.name << ": " << mutant.elsewhere;
    }
  }
  EXPECT_GE(names.size(), 150U);
  std::cout << names.size() << " mutants\n";
}

TEST(LaterMutants, AreInTheCatalogueEachWithARow) {
  std::set<std::string_view> seen;
  for (const LaterMutant& row : later_mutants()) {
    EXPECT_TRUE(seen.insert(row.name).second) << row.name;
    EXPECT_TRUE(exists(row.name)) << row.name;
  }
  for (const auto part :
       {later_faults, second_address_faults, second_mask_faults, second_softmax_faults}) {
    for (const KernelFault& fault : part()) {
      EXPECT_TRUE(seen.contains("faulty-" + std::string(fault.id))) << fault.id;
    }
  }
  for (const auto part : {later_metadata_faults(), second_metadata_faults()}) {
    for (const MetadataFault& fault : part) {
      EXPECT_TRUE(seen.contains("metadata:" + std::string(fault.id))) << fault.id;
    }
  }
  for (const Mutant& mutant : all_mutants()) {
    EXPECT_EQ(mutant.later(), later_mutant(mutant.name) != nullptr) << mutant.name;
    EXPECT_NE(was_written(mutant, Written::before_the_oracles),
              was_written(mutant, Written::after_the_oracles));
    EXPECT_TRUE(was_written(mutant, Written::ever));
  }
  EXPECT_EQ(later_mutant("faulty-stale_page.unified@cpu"), nullptr);
  EXPECT_EQ(later_mutant("faulty-sink_scaled_differently.unified@cpu"), nullptr);
}

TEST(LaterMutants, AreOfOneBatchEach) {
  int first = 0, second = 0;
  for (const LaterMutant& row : later_mutants()) {
    EXPECT_EQ(later_mutant(row.name), &row);
    (row.batch == 1 ? first : second) += 1;
    EXPECT_TRUE(row.batch == 1 || row.batch == 2) << row.name;
  }
  EXPECT_EQ(first, 61);
  EXPECT_EQ(second, 40);
  for (const LaterMutant& row : second_later_mutants()) EXPECT_EQ(row.batch, 2) << row.name;
  for (const Mutant& mutant : all_mutants()) {
    const bool of_one =
        was_written(mutant, Written::first_batch) != was_written(mutant, Written::second_batch);
    EXPECT_EQ(of_one, mutant.later()) << mutant.name;
  }
  const Mutant ours{.name = "faulty-v_pairs_swapped.decode@cpu", .batch = 2};
  EXPECT_TRUE(was_written(ours, Written::second_batch));
  EXPECT_FALSE(was_written(ours, Written::first_batch));
}

TEST(Mutants, SitAtEverySite) {
  std::set<Site> sites;
  for (const Mutant& mutant : all_mutants()) sites.insert(mutant.site);
  EXPECT_EQ(sites.size(), 8U);
  EXPECT_EQ(site_of_fault("faulty-scale_one_percent_large.unified@cpu"), Site::kernel_math);
  EXPECT_EQ(site_of_fault("faulty-merge_not_rescaled.unified@cpu"), Site::reduction);
}

/// attest mutants --list prints them.
TEST(Mutants, HaveClassesAndSitesThatCanBeExplained) {
  for (int kind = 0; kind <= static_cast<int>(BugClass::outside); ++kind) {
    const std::string_view word = name(static_cast<BugClass>(kind));
    EXPECT_TRUE(explain_text(word, Console::silent())) << word;
  }
  for (int site = 0; site <= static_cast<int>(Site::process); ++site) {
    const std::string_view word = name(static_cast<Site>(site));
    EXPECT_TRUE(explain_text(word, Console::silent())) << word;
  }
}

TEST(GenericMutants, HaveStandInsThatExist) {
  std::set<std::string_view> seen;
  for (const GenericMutant& one : generic_mutants()) {
    EXPECT_TRUE(seen.insert(one.id).second) << one.id;
    EXPECT_TRUE(exists(one.stands)) << one.id << ": " << one.stands;
  }
  EXPECT_EQ(seen.size(), 22U);
}

TEST(Mutants, AreEquivalentOnlyWithAReason) {
  const auto all = all_mutants();
  int at_512 = 0, at_40k = 0;
  for (const Mutant& mutant : all) {
    at_512 += equivalent_because(mutant, 512).empty() ? 0 : 1;
    at_40k += equivalent_because(mutant, 40960).empty() ? 0 : 1;
  }
  // A benign order of roundings, a tail that no call has, splits that leave nothing over, and a
  // limit past every key on four kernels.
  EXPECT_EQ(at_512, 7);
  EXPECT_EQ(at_40k, 2);
}

}  // namespace
}  // namespace attest
