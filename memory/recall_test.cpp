#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "memory/test_support.hpp"

namespace attest {
namespace {

struct Tried {
  int owners = 0;
  int decoys = 0;
  double worst = 0;  ///< largest |output - code word| of an owner, relative to the code's 2
};

/// Every owner's true output against the code word in V of its key; every plant's visibility.
Tried check_recall(const TensorSource& source) {
  const Attended meaning = attended(source.problem());
  std::vector<double> code(static_cast<std::size_t>(source.problem().model.v_head_dim));
  Tried tried;
  for (const Plant& plant : source.plants()) {
    const bool visible = sees(meaning.rows[static_cast<std::size_t>(plant.row)], plant.key);
    EXPECT_EQ(visible, !plant.decoy) << plant.row << ' ' << plant.key.position;
    (plant.decoy ? tried.decoys : tried.owners) += 1;
    if (plant.decoy) continue;
    source.v_row(plant.key, plant.kv_head, std::span(code));
    const RowAttention attention = attend(source, meaning, plant.row, plant.q_head);
    for (std::size_t d = 0; d < code.size(); ++d) {
      EXPECT_EQ(std::fabs(code[d]), 2);
      tried.worst = std::max(tried.worst, std::fabs(attention.out[d] - code[d]) / 2);
    }
  }
  return tried;
}

Problem tree_problem() {
  Problem p = verify_problem({70, 33}, 6);
  p.requests[0].tree_parent = {-1, 0, 0, 1, 1, 2};
  p.requests[1].tree_parent = {-1, -1, 0, 1, 2, 3};
  p.topk = 2;
  return p;
}

Problem branches_problem() {
  Problem p = verify_problem({40, 40, 40}, 1);
  p.mode = Mode::draft_decode;
  for (Request& r : p.requests) {
    r.shared_prefix = 36;
    r.shared_sequence = 77;
  }
  return p;
}

TEST(Recall, AnswersAnOwnerWithItsCodeWord) {
  const Tried tried =
      check_recall(TensorSource(verify_problem({300, 31, 129}, 4), Recipe::recall, 3));
  EXPECT_GE(tried.owners, 80);  // of 12 rows * 8 heads = 96
  EXPECT_GE(tried.decoys, 6);
  EXPECT_LT(tried.worst, 0.03);
}

TEST(Recall, HoldsForEveryDtypeAndDescale) {
  for (const Dtype dtype : {Dtype::f32, Dtype::f16, Dtype::fp8_e4m3fn, Dtype::fp8_e4m3fnuz}) {
    Problem p = verify_problem({200}, 4);
    p.model.q_dtype = p.model.kv_dtype = dtype;
    if (is_fp8(dtype)) {
      p.model.q_descale = 0.25;
      p.model.k_descale = 0.5;
    }
    EXPECT_LT(check_recall(TensorSource(p, Recipe::recall, 5)).worst, 0.03) << name(dtype);
  }
}

TEST(Recall, HoldsUnderASoftcapAndANegativeScale) {
  Problem p = verify_problem({200}, 4);
  p.model.softcap = 30;
  EXPECT_LT(check_recall(TensorSource(p, Recipe::recall, 6)).worst, 0.03);
  p.model.softmax_scale = -0.125;
  EXPECT_LT(check_recall(TensorSource(p, Recipe::recall, 6)).worst, 0.03);
}

TEST(Recall, PutsDecoysOutsideTheWindow) {
  Problem p = verify_problem({300, 90}, 4);
  p.model.window = 50;
  const TensorSource source(p, Recipe::recall, 8);
  const Tried tried = check_recall(source);
  EXPECT_GE(tried.decoys, 8);
  EXPECT_LT(tried.worst, 0.03);
  const auto just_outside =
      std::count_if(source.plants().begin(), source.plants().end(), [&](const Plant& plant) {
        const std::int64_t at = plant.row < 4 ? 300 + plant.row : 90 + plant.row - 4;
        return plant.decoy && plant.key.position == at - 50;
      });
  EXPECT_GE(just_outside, 3);
}

TEST(Recall, PutsDecoysOnOtherBranchesOfATree) {
  const TensorSource source(tree_problem(), Recipe::recall, 2);
  const Tried tried = check_recall(source);
  EXPECT_GE(tried.decoys, 6);
  EXPECT_LT(tried.worst, 0.03);
}

TEST(Recall, PutsDecoysOnSiblingBranches) {
  const Problem p = branches_problem();
  int siblings = 0;
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    const TensorSource source(p, Recipe::recall, seed);
    EXPECT_LT(check_recall(source).worst, 0.03);
    for (const Plant& plant : source.plants()) {
      siblings +=
          plant.decoy && source.token_of_row(plant.row).value().sequence != plant.key.sequence;
    }
  }
  EXPECT_GE(siblings, 3);
}

TEST(Recall, ServesMlaFromTheHeadOfTheKeyRow) {
  Problem p = verify_problem({150}, 4);
  p.model = {.num_q_heads = 16, .num_kv_heads = 1, .head_dim = 576, .v_head_dim = 512};
  p.model.softmax_scale = 0.0721688;
  p.model.mla = true;
  const Tried tried = check_recall(TensorSource(p, Recipe::recall, 9));
  EXPECT_GE(tried.owners, 60);
  EXPECT_LT(tried.worst, 0.03);
}

TEST(Recall, UsesTheEncoderInCrossAttention) {
  Problem p = verify_problem({20}, 2);
  p.model.cross_attention = true;
  p.requests[0].encoder_tokens = 60;
  p.pool.num_pages += 8;
  const TensorSource source(p, Recipe::recall, 9);
  EXPECT_LT(check_recall(source).worst, 0.03);
  EXPECT_EQ(source.plants().size(), 16U);
  for (const Plant& plant : source.plants()) EXPECT_LT(plant.key.position, 0);
}

TEST(Recall, LeavesRowsWithoutAFreeKeyOrdinary) {
  Problem p = verify_problem({0}, 1);  // one key, four q heads per kv head
  const TensorSource source(p, Recipe::recall, 1);
  EXPECT_EQ(source.plants().size(), 2U);
}

TEST(Recall, PlantsOneKeyAtAPlaceInSortedOrder) {
  const TensorSource source(verify_problem({100, 40}, 4), Recipe::recall, 4);
  const auto place = [](const Plant& p) {
    return std::tuple(p.key.sequence, p.key.position, p.kv_head);
  };
  for (std::size_t i = 1; i < source.plants().size(); ++i) {
    EXPECT_LT(place(source.plants()[i - 1]), place(source.plants()[i]));
  }
}

TEST(Recall, RotatesPlacesWithTheSeed) {
  const Problem p = verify_problem({200}, 4);
  std::map<std::string, int> visits;
  std::set<std::vector<std::int64_t>> placements;
  constexpr int seeds = 24;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    const TensorSource source(p, Recipe::recall, seed);
    std::vector<std::int64_t> positions;
    std::set<std::string> here;
    for (const Plant& plant : source.plants()) {
      const std::int64_t at = plant.key.position;
      positions.push_back(at);
      if (plant.decoy) {
        here.insert("decoy on a later draft");
        continue;
      }
      if (at == 200 + plant.row) here.insert("own slot");
      if (at == 199) here.insert("last committed");
      if (at == 198) here.insert("last but one");
      if (at == 0) here.insert("key 0");
      if (at % 16 == 0 && at < 200) here.insert("page start");
      if (at % 16 == 15) here.insert("page end");
      if (at % 64 == 0) here.insert("tile start");
      if (at % 64 == 63) here.insert("tile end");
    }
    placements.insert(positions);
    for (const std::string& word : here) ++visits[word];
  }
  EXPECT_EQ(placements.size(), static_cast<std::size_t>(seeds));
  EXPECT_EQ(visits.size(), 9U);
  for (const auto& [word, count] : visits) EXPECT_GE(count, seeds / 2) << word;
}

TEST(Recall, KeepsARequestsPlacesInAnotherBatch) {
  const Problem both = verify_problem({100, 60}, 4);
  Problem alone = both;
  alone.requests.erase(alone.requests.begin());
  const TensorSource batch(both, Recipe::recall, 4);
  const TensorSource single(alone, Recipe::recall, 4);
  std::vector<std::byte> a(128);
  std::vector<std::byte> b(128);
  for (std::int64_t t = 0; t < 64; ++t) {
    batch.k_row({2, t}, 1, a);
    single.k_row({2, t}, 1, b);
    EXPECT_EQ(a, b) << t;
  }
  batch.q_row(5, 3, a);
  single.q_row(1, 3, b);
  EXPECT_EQ(a, b);
}

}  // namespace
}  // namespace attest
