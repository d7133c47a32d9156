#include "contracts/work_lists.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "contracts/rules.hpp"
#include "contracts/signatures.hpp"
#include "contracts/signatures/sample_problems.hpp"

namespace attest {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Problem verify() { return sample_mla_problem(Mode::target_verify, {{131, 4}, {5, 4}, {60, 4}}); }

MlaDecodeCall lowered(const Problem& p) {
  return std::get<MlaDecodeCall>(lower_mla_decode(p, make_slot_map(p)));
}

/// Rules that fire, with their places: "work_info.covers_every_key_once row 3 of request 0".
std::vector<std::string> findings(const MlaDecodeCall& call, const Problem& p) {
  const SlotMap slots = make_slot_map(p);
  std::vector<std::string> found;
  for (const Finding& finding : check(call, {p, slots}).findings()) {
    found.push_back(finding.rule + " " + finding.where);
  }
  return found;
}

/// Those of the rules about work lists.
std::vector<std::string> list_findings(const MlaDecodeCall& call, const Problem& p) {
  std::vector<std::string> found = findings(call, p);
  std::erase_if(found, [](const std::string& f) {
    return !f.starts_with("work_") && !f.starts_with("reduce.");
  });
  return found;
}

TEST(WorkLists, AreAcceptedForEveryNumberOfParts) {
  const Problem p = verify();
  for (const std::int64_t parts : {1, 2, 3, 7, 64}) {
    EXPECT_THAT(findings(with_work_lists(lowered(p), parts), p), IsEmpty()) << parts;
  }
}

TEST(WorkLists, CutEachRequestAndMergeItsParts) {
  const MlaDecodeCall call = with_work_lists(lowered(verify()), 4);
  EXPECT_TRUE(call.persistent);
  const WorkLists lists = work_lists(call);
  ASSERT_EQ(lists.works.size(), 5U);
  EXPECT_EQ(lists.works[0], (WorkItem{.request = 0,
                                      .partial = 0,
                                      .first_row = 0,
                                      .last_row = 4,
                                      .first_key = 0,
                                      .last_key = 64,
                                      .keys_after = 71,
                                      .index = 0}));
  EXPECT_EQ(lists.works[3], (WorkItem{.request = 1,
                                      .partial = -1,
                                      .first_row = 4,
                                      .last_row = 8,
                                      .first_key = 135,
                                      .last_key = 144,
                                      .keys_after = 0,
                                      .index = 3}));
  ASSERT_EQ(lists.merges.size(), 1U);
  EXPECT_EQ(lists.merges[0].last_row, 4);
  EXPECT_THAT(lists.merges[0].partials, ElementsAre(0, 4, 8));
}

TEST(WorkLists, MayBeLongerThanWhatIsUsed) {
  const Problem p = verify();
  MlaDecodeCall call = with_work_lists(lowered(p), 4);
  call.work_info_set->values.insert(call.work_info_set->values.end(), 80, 0x7f7f7f7f);
  call.work_info_set->meta.shape[0] += 10;
  call.reduce_indptr->values.insert(call.reduce_indptr->values.end(), 5,
                                    call.reduce_indptr->values.back());
  call.reduce_indptr->meta.shape[0] += 5;
  call.reduce_final_map->values.insert(call.reduce_final_map->values.end(), 10, -1);
  call.reduce_final_map->meta.shape[0] += 5;
  call.reduce_partial_map->values.insert(call.reduce_partial_map->values.end(), 9, 77);
  call.reduce_partial_map->meta.shape[0] += 9;
  for (std::optional<IntArray>* list : {&call.work_info_set, &call.reduce_indptr,
                                        &call.reduce_final_map, &call.reduce_partial_map}) {
    (*list)->meta = contiguous(Dtype::int32, (*list)->meta.shape);
  }
  EXPECT_THAT(findings(call, p), IsEmpty());
}

// 32 heads without a kernel of their own: the planner makes two requests of 16 heads out of each.
TEST(WorkLists, MayFoldHeadsIntoRequests) {
  Problem p = verify();
  p.model.num_q_heads = 32;
  MlaDecodeCall call = with_work_lists(lowered(p), 1);
  std::vector<std::int64_t> info, final_map;
  for (std::int64_t half = 0; half < 6; ++half) {
    const std::int64_t first = call.kv_indptr[static_cast<std::size_t>(half / 2)];
    const std::int64_t last = call.kv_indptr[static_cast<std::size_t>(half / 2) + 1];
    info.insert(info.end(), {half, -1, 4 * half, 4 * half + 4, first, last, 0, 0});
    final_map.insert(final_map.end(), {4 * half, 4 * half + 4});
  }
  call.work_info_set = int_matrix(Dtype::int32, 6, 8, info);
  call.work_indptr = int_array(Dtype::int32, {0, 6});
  call.reduce_indptr = int_array(Dtype::int32, std::vector<std::int64_t>(7));
  call.reduce_final_map = int_matrix(Dtype::int32, 6, 2, final_map);
  EXPECT_THAT(findings(call, p), IsEmpty());
  call.work_info_set->values[5 * 8 + 5] -= 4;
  call.work_info_set->values[5 * 8 + 6] += 4;
  EXPECT_THAT(findings(call, p),
              ElementsAre("work_info.covers_every_key_once row 23 of request 2"));
}

// One row a tile: the planner leaves a tile the keys that its row sees.
TEST(WorkLists, MayLeaveOutWhatTheCausalOrderHides) {
  const Problem p = sample_mla_problem(Mode::target_verify, {{30, 2}});
  MlaDecodeCall call = with_work_lists(lowered(p), 1);
  call.work_info_set =
      int_matrix(Dtype::int32, 2, 8, {0, -1, 0, 1, 0, 31, 1, 0, 0, -1, 1, 2, 0, 32, 0, 0});
  call.work_indptr = int_array(Dtype::int32, {0, 2});
  call.reduce_indptr = int_array(Dtype::int32, {0, 0, 0});
  call.reduce_final_map = int_matrix(Dtype::int32, 2, 2, {0, 1, 1, 2});
  EXPECT_THAT(findings(call, p), IsEmpty());
  call.work_info_set->values[5] = 30;
  call.work_info_set->values[6] = 2;
  EXPECT_THAT(findings(call, p), ElementsAre("work_info.covers_every_key_once row 0 of request 0"));
}

// What the planner makes of a padded row without keys: works that end before they begin. And one
// without rows.
TEST(WorkLists, MayHoldWorksThatDoNothing) {
  Problem p = sample_mla_problem(Mode::target_verify, {{30, 2}, {0, 2}});
  p.requests[1].live = false;
  MlaDecodeCall call = with_work_lists(lowered(p), 1);
  call.kv_indptr.values[2] = call.kv_indptr.values[1];
  call.kv_indices.values.resize(32);
  call.kv_indices.meta = contiguous(Dtype::int32, {32});
  call.work_info_set =
      int_matrix(Dtype::int32, 4, 8, {0, -1, 0, 2, 0,  32, 0, 0, 1, -1, 2, 3, 32, 31, 1, 0,
                                      1, -1, 3, 4, 32, 32, 0, 0, 1, -1, 2, 2, 0,  5,  0, 0});
  call.work_indptr = int_array(Dtype::int32, {0, 4});
  EXPECT_THAT(list_findings(call, p), IsEmpty());
}

TEST(WorkLists, OfPaddedRowsAreNotJudgedByWhatTheyCompute) {
  Problem p = sample_mla_problem(Mode::target_verify, {{30, 2}, {9, 2}});
  p.requests[1].live = false;
  MlaDecodeCall call = with_work_lists(lowered(p), 1);
  call.work_info_set->values[8 + 5] -= 3;
  EXPECT_THAT(list_findings(call, p), IsEmpty());
  p.requests[1].live = true;
  EXPECT_EQ(list_findings(call, p).size(), 2U);
}

TEST(WorkLists, MayLieInMemoryForLongerDrafts) {
  const Problem p = verify();
  MlaDecodeCall call = with_work_lists(lowered(p), 3);
  call.sized_for->max_seqlen_qo = 9;
  EXPECT_THAT(findings(call, p), IsEmpty());
  call.sized_for->max_seqlen_qo = 3;
  EXPECT_THAT(findings(call, p), ElementsAre("work_plan.is_the_launchs sized_for.max_seqlen_qo"));
}

TEST(WorkLists, HaveMemoryAsEveryArrayHas) {
  const Problem p = verify();
  MlaDecodeCall call = with_work_lists(lowered(p), 3);
  call.work_indptr->meta.strides = {3};
  call.work_indptr->meta.storage_bytes *= 3;
  call.reduce_indptr->meta.storage_bytes = 4;
  call.work_info_set->meta.storage = call.o.storage = "one";
  EXPECT_THAT(findings(call, p),
              testing::UnorderedElementsAre("dtypes.index_arrays_are_dense work_indptr.stride(-1)",
                                            "tensor.lies_inside_its_storage reduce_indptr",
                                            testing::StartsWith("out.overlaps_no_input")));
}

TEST(WorkLists, ThatRepeatAreReadTwiceAtMost) {
  MlaDecodeCall call = with_work_lists(lowered(verify()), 4);
  std::vector<std::int64_t> back_and_forth;
  for (int i = 0; i < 10'000; ++i) back_and_forth.insert(back_and_forth.end(), {0, 5});
  call.work_indptr = int_array(Dtype::int32, back_and_forth);
  EXPECT_EQ(work_lists(call).works.size(), 10U);
  EXPECT_FALSE(findings(call, verify()).empty());
}

TEST(WorkLists, SayWhichListCannotBeRead) {
  MlaDecodeCall call = with_work_lists(lowered(verify()), 2);
  EXPECT_EQ(work_lists_error(call), std::nullopt);
  call.reduce_final_map = int_matrix(Dtype::int32, 2, 2, {0, 4, 4, 8});
  EXPECT_THAT(*work_lists_error(call), HasSubstr("reduce_final_map has 2 rows for 3 tiles"));
  call.work_info_set->recorded = false;
  EXPECT_THAT(*work_lists_error(call), HasSubstr("work_info_set were not recorded"));
  call.work_indptr.reset();
  EXPECT_EQ(*work_lists_error(call), "work_indptr is absent");
}

// Hostile lists and lengths must end in findings.
TEST(WorkLists, OfAnyValuesAreJudged) {
  constexpr std::int64_t top = std::numeric_limits<std::int64_t>::max();
  const Problem p = verify();
  for (const std::int64_t value : {top, -top - 1, std::int64_t{-1}, std::int64_t{1} << 40}) {
    for (std::size_t at = 0; at < 8; ++at) {
      MlaDecodeCall call = with_work_lists(lowered(p), 4);
      call.work_info_set->meta.dtype = Dtype::int64;
      call.work_info_set->values[8 + at] = value;
      if (at < 7) {
        EXPECT_GT(findings(call, p).size(), 1U) << at << " " << value;
      }
    }
    MlaDecodeCall call = with_work_lists(lowered(p), 4);
    call.work_indptr->values[2] = value;
    call.reduce_indptr->values[1] = value;
    call.reduce_final_map->values[0] = value;
    call.reduce_partial_map->values[1] = value;
    call.kv_indptr.values[1] = value;
    call.max_seqlen_q = value;
    call.page_size = value;
    EXPECT_FALSE(findings(call, p).empty());
  }
}

}  // namespace
}  // namespace attest
