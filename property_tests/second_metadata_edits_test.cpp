#include <gtest/gtest.h>

#include <vector>

#include "contracts/signatures.hpp"
#include "property_tests/fault_edits.hpp"

namespace attest {
namespace {

/// Two requests of 40 and 24 keys, in pages of 16.
Problem two_requests() {
  Problem p;
  p.model.num_q_heads = p.model.num_kv_heads = 2;
  p.pool.page_size = 16;
  p.pool.num_pages = 32;
  p.mode = Mode::target_verify;
  p.num_draft_tokens = 4;
  p.requests = {{.sequence = 1, .committed = 36, .new_tokens = 4},
                {.sequence = 2, .committed = 20, .new_tokens = 4}};
  return p;
}

template <class CallType>
CallType lowered(Signature signature, const Problem& p) {
  return std::get<CallType>(std::get<Call>(lower(signature, p, make_slot_map(p))));
}

TEST(SecondEdits, ShiftAWindowedRowByWhatTheWindowHides) {
  Problem p = two_requests();
  const SlotMap slots = make_slot_map(p);
  Call call = lowered<UnifiedCall>(Signature::unified, p);
  EXPECT_FALSE(table_without_the_evicted_pages(p, slots, call));  // no window
  p.model.window = 8;
  const auto right = lowered<UnifiedCall>(Signature::unified, p);
  call = right;
  ASSERT_TRUE(table_without_the_evicted_pages(p, slots, call));
  const IntArray& table = std::get<UnifiedCall>(call).block_table;
  // The first row of request 0 sees keys from 29 on: one page of 16 is gone. Of request 1: none is.
  EXPECT_EQ(table.at(0, 0), right.block_table.at(0, 1));
  EXPECT_EQ(table.at(0, 1), right.block_table.at(0, 2));
  EXPECT_EQ(table.at(1, 0), right.block_table.at(1, 0));
}

TEST(SecondEdits, PutThePagesOfTheNewTokensFirst) {
  const Problem p = two_requests();
  const auto right = lowered<UnifiedCall>(Signature::unified, p);
  Call call = right;
  ASSERT_TRUE(pages_of_the_prefix_last(p, make_slot_map(p), call));
  const IntArray& table = std::get<UnifiedCall>(call).block_table;
  EXPECT_EQ(table.at(0, 0), right.block_table.at(0, 2));
  EXPECT_EQ(table.at(0, 1), right.block_table.at(0, 0));
  EXPECT_EQ(table.at(0, 2), right.block_table.at(0, 1));
  Problem short_ones = p;
  for (Request& r : short_ones.requests) r.committed = 2;
  Call one_page = lowered<UnifiedCall>(Signature::unified, short_ones);
  EXPECT_FALSE(pages_of_the_prefix_last(short_ones, make_slot_map(short_ones), one_page));
}

TEST(SecondEdits, GiveABranchTheDraftsOfTheOneBefore) {
  Problem p = two_requests();
  p.mode = Mode::draft_decode;
  p.topk = 2;
  p.draft_step = 2;
  for (Request& r : p.requests) {
    r.committed = 20;
    r.new_tokens = 1;
    r.shared_prefix = 18;
    r.shared_sequence = 9;
  }
  const SlotMap slots = make_slot_map(p);
  const auto right = lowered<DecodeCall>(Signature::decode, p);
  Call call = right;
  ASSERT_TRUE(branches_read_each_others_drafts(p, slots, call));
  const IntArray& table = std::get<DecodeCall>(call).req_to_token;
  const auto row = [&](std::size_t i) {
    return static_cast<std::size_t>(right.req_pool_indices.values[i]);
  };
  for (const std::size_t column : {18U, 19U}) {
    EXPECT_EQ(table.at(row(1), column), right.req_to_token.at(row(0), column));
    EXPECT_EQ(table.at(row(0), column), right.req_to_token.at(row(0), column));
  }
  EXPECT_EQ(table.at(row(1), 20), right.req_to_token.at(row(1), 20));  // its own new token
  p.draft_step = 0;
  for (Request& r : p.requests) r.committed = 18;
  call = lowered<DecodeCall>(Signature::decode, p);
  EXPECT_FALSE(branches_read_each_others_drafts(p, make_slot_map(p), call));
}

TEST(SecondEdits, RotateTheLists) {
  const Problem p = two_requests();
  const auto right = lowered<BatchPrefillCall>(Signature::batch_prefill, p);
  Call call = right;
  ASSERT_TRUE(lists_in_another_order(p, make_slot_map(p), call));
  const auto& c = std::get<BatchPrefillCall>(call);
  EXPECT_EQ(c.kv_indptr.values, (std::vector<std::int64_t>{0, 24, 64}));
  EXPECT_EQ(c.kv_page_indices.values.size(), right.kv_page_indices.values.size());
  EXPECT_EQ(c.kv_page_indices.values[0], right.kv_page_indices.values[40]);
  EXPECT_EQ(c.kv_page_indices.values[24], right.kv_page_indices.values[0]);
}

TEST(SecondEdits, CountTheEncoderOnceMore) {
  Problem p = two_requests();
  for (Request& r : p.requests) r.new_tokens = 1;
  p.mode = Mode::decode;
  Call call = lowered<DecodeCall>(Signature::decode, p);
  EXPECT_FALSE(seq_lens_include_the_encoder(p, make_slot_map(p), call));
  for (Request& r : p.requests) r.encoder_tokens = 5;
  const auto right = lowered<DecodeCall>(Signature::decode, p);
  call = right;
  ASSERT_TRUE(seq_lens_include_the_encoder(p, make_slot_map(p), call));
  EXPECT_EQ(std::get<DecodeCall>(call).seq_lens[0], right.seq_lens[0] + 5);
}

TEST(SecondEdits, ExchangeDraftsThatDoNotFollowEachOther) {
  Problem p = two_requests();
  const SlotMap slots = make_slot_map(p);
  p.topk = 2;
  // Of the first, drafts 1 and 2 are siblings and 3 hangs from 1; the other one is a chain.
  p.requests[0].tree_parent = {-1, 0, 0, 1};
  p.requests[1].tree_parent = {-1, 0, 1, 2};
  const auto right = lowered<ExtendCall>(Signature::extend, p);
  Call call = right;
  ASSERT_TRUE(mask_before_the_reordering(p, slots, call));
  std::vector<std::int64_t> expected = right.tree_mask->values;
  expected[3 * 4 + 1] = 0;  // 3 now seems to hang from 2
  expected[3 * 4 + 2] = 1;
  EXPECT_EQ(std::get<ExtendCall>(call).tree_mask->values, expected);
  p.requests[0].tree_parent = {-1, 0, 1, 2};
  Call chains = lowered<LegacyExtendCall>(Signature::legacy_extend, p);
  EXPECT_FALSE(mask_before_the_reordering(p, slots, chains));
}

}  // namespace
}  // namespace attest
