#include "contracts/aiter_routes.hpp"

#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <sstream>

#include "contracts/signatures.hpp"
#include "contracts/signatures/sample_problems.hpp"

namespace attest {
namespace {

constexpr std::array releases = {AiterRelease::v0_5_19, AiterRelease::v0_5_23, AiterRelease::later};
constexpr std::array modes = {Mode::decode,      Mode::idle,          Mode::extend,
                              Mode::mixed,       Mode::target_verify, Mode::draft_extend_v2,
                              Mode::draft_decode};

std::vector<AiterSwitches> every_combination() {
  std::vector<AiterSwitches> all;
  for (int bits = 0; bits < 64; ++bits) {
    const auto bit = [&](int i) { return (bits >> i & 1) != 0; };
    all.push_back({.mla = bit(0),
                   .window_pool = bit(1),
                   .unified_attn = bit(2),
                   .unified_verify = bit(3),
                   .unified_draft_extend = bit(4),
                   .topk = bit(5) ? 4 : 1});
  }
  return all;
}

/// A step of the mode as the server has it: trees where several branches are verified, a window
/// where windowed layers have a pool.
Problem step_of(const AiterSwitches& s, Mode mode, std::int64_t page_size) {
  const bool one = mode == Mode::decode || mode == Mode::idle || mode == Mode::draft_decode;
  const std::int64_t rows = one ? 1 : 4;
  Problem p = s.mla ? sample_mla_problem(mode, {{18, rows}, {5, rows}})
                    : sample_problem(mode, {{18, rows}, {5, rows}});
  if (!s.mla) p.model.head_dim = p.model.v_head_dim = 64;
  p.topk = s.topk;
  p.num_draft_tokens = rows;
  p.pool.page_size = page_size;
  const bool tree = mode == Mode::target_verify && s.topk > 1 && !s.mla;
  if (tree) p.requests[0].tree_parent = p.requests[1].tree_parent = {-1, 0, 0, 1};
  if (s.window_pool && !s.mla && !tree) p.model.window = 8;
  fit_pool(p);
  return p;
}

TEST(AiterRoutes, EachReachALoweringThatTakesTheStep) {
  int reached = 0;
  for (const AiterSwitches& s : every_combination()) {
    for (const AiterRelease release : releases) {
      for (const Mode mode : modes) {
        const AiterRoute route = aiter_route(s, release, mode);
        if (!route.signature) {
          EXPECT_TRUE(s.mla && (mode == Mode::extend || mode == Mode::mixed));
          continue;
        }
        for (const std::int64_t page_size : {1, 16, 64}) {
          const Problem p = step_of(s, mode, page_size);
          const auto lowered = lower(*route.signature, p, make_slot_map(p));
          const auto* refused = std::get_if<Unsupported>(&lowered);
          EXPECT_EQ(refused, nullptr)
              << aiter_routes_text() << name(mode) << ": " << (refused ? refused->reason : "");
          ++reached;
        }
      }
    }
  }
  EXPECT_EQ(reached, 3 * (64 * 7 - 32 * 2) * 3);
}

TEST(AiterRoutes, ShowEveryKernelButUnifiedTheSlots) {
  for (const AiterSwitches& s : every_combination()) {
    for (const Mode mode : modes) {
      const AiterRoute route = aiter_route(s, AiterRelease::later, mode);
      if (!route.signature) continue;
      EXPECT_EQ(route.slots, *route.signature != Signature::unified);
    }
  }
}

/// A windowed layer without a pool of its own decodes on a kernel without windows
/// (sgl-project/sglang#38756): the route is there, the lowering refuses.
TEST(AiterRoutes, LeadAWindowedLayerToARefusalWhereUnifiedIsOff) {
  const AiterRoute route = aiter_route({}, AiterRelease::later, Mode::decode);
  Problem p = step_of({}, Mode::decode, 16);
  p.model.window = 8;
  ASSERT_EQ(route.signature, Signature::paged_ragged);
  const auto lowered = lower_paged_ragged(p, make_slot_map(p));
  EXPECT_EQ(std::get<Unsupported>(lowered).reason, "paged_ragged has no window");
}

TEST(AiterRoutes, ChangedBetweenReleases) {
  const AiterSwitches plain;
  AiterSwitches unified;
  unified.unified_attn = true;
  const auto at = [](const AiterSwitches& s, AiterRelease release, Mode mode) {
    return aiter_route(s, release, mode).signature;
  };
  EXPECT_EQ(at(unified, AiterRelease::v0_5_19, Mode::extend), Signature::batch_prefill);
  EXPECT_EQ(at(unified, AiterRelease::v0_5_23, Mode::extend), Signature::unified);
  EXPECT_EQ(at(plain, AiterRelease::v0_5_23, Mode::draft_extend_v2), Signature::batch_prefill);
  EXPECT_EQ(at(plain, AiterRelease::later, Mode::draft_extend_v2), Signature::unified);
  unified.unified_verify = false;
  EXPECT_EQ(at(unified, AiterRelease::v0_5_19, Mode::draft_extend_v2), Signature::batch_prefill);
  EXPECT_EQ(at(unified, AiterRelease::later, Mode::target_verify), Signature::legacy_extend);
}

TEST(AiterRoutes, AreTheOnesOfTheDocumentation) {
  std::ifstream file(std::string(ATTEST_SOURCE_DIR) + "/docs/aiter_routes.md");
  std::ostringstream text;
  text << file.rdbuf();
  EXPECT_NE(text.str().find(aiter_routes_text()), std::string::npos)
      << "docs/aiter_routes.md must contain\n"
      << aiter_routes_text();
}

}  // namespace
}  // namespace attest
