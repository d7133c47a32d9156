#include "contracts/rules/broken_parts.hpp"

namespace attest {
namespace {

Problem at_the_context_limit() {
  Problem p = sample_problem(Mode::target_verify, {{61, 3}, {9, 3}});
  p.context_len = 64;
  return p;
}

/// Keeps the first `columns` of every row.
void narrow(UnifiedCall& call, std::int64_t columns) {
  std::vector<std::int64_t> cells;
  for (std::int64_t i = 0; i < call.block_table.size(0); ++i) {
    for (std::int64_t c = 0; c < columns; ++c) {
      cells.push_back(
          call.block_table.at(static_cast<std::size_t>(i), static_cast<std::size_t>(c)));
    }
  }
  call.block_table = int_matrix(Dtype::int32, call.block_table.size(0), columns, std::move(cells));
}

void break_table(BrokenCalls& calls) {
  calls.unified("block_table.is_wide_enough", "the newest page has no column",
                at_the_context_limit(), [](UnifiedCall& c) { narrow(c, 3); });
  calls.unified("block_table.has_room_for_the_drafts",
                "the table is as wide as the context, without the drafts", at_the_context_limit(),
                [](UnifiedCall& c) { narrow(c, 4); });
  calls.unified("block_table.ends_on_a_tile", "the table is as wide as the longest request",
                uneven_verify(), [](UnifiedCall& c) { narrow(c, 3); });
  calls.unified("block_table.names_existing_pages", "a page id of a larger pool", uneven_verify(),
                [](UnifiedCall& c) { c.block_table.values[1] = c.k.shape[0]; });
  calls.unified("block_table.unread_cells_name_existing_pages", "unused cells hold -1",
                uneven_verify(), [](UnifiedCall& c) { c.block_table.values[3] = -1; });
  calls.unified("block_table.names_the_requests_pages",
                "the table of the first request was never filled", uneven_verify(),
                [](UnifiedCall& c) {
                  for (std::size_t j = 0; j < 3; ++j) c.block_table.values[j] = 0;
                });
  calls.unified("block_table.names_the_requests_pages",
                "a request reads its first page from the row before", uneven_verify(),
                [](UnifiedCall& c) { c.block_table.values[4] = c.block_table.values[0]; });
  calls.unsaid("block_table.keeps_pages_together",
               "the last slots were handed out singly, a table names whole pages",
               slots_scattered(), slots_together());
  calls.unified("block_table.gives_each_request_its_own_new_slots",
                "both requests store their new token in one slot",
                sample_problem(Mode::decode, {{20, 1}, {36, 1}}),
                [](UnifiedCall& c) { c.block_table.values[4 + 2] = c.block_table.values[1]; });
}

void break_indices(BrokenCalls& calls) {
  calls.mla("kv_indices.name_existing_pages", "a slot of a larger pool", mla_verify(),
            [](MlaDecodeCall& c) { c.kv_indices.values[3] = c.kv_buffer.shape[0]; });
  calls.mla("kv_indices.name_the_requests_slots", "the indices are shifted by one entry",
            mla_verify(), [](MlaDecodeCall& c) {
              auto& ids = c.kv_indices.values;
              for (std::size_t j = 0; j + 1 < ids.size(); ++j) ids[j] = ids[j + 1];
            });
  calls.mla("kv_indices.give_each_request_its_own_new_slots",
            "both requests store their last token in one slot", mla_verify(),
            [](MlaDecodeCall& c) { c.kv_indices.values[26] = c.kv_indices.values[19]; });
  calls.mla("kv_indices.have_no_slack", "kv_indices is the graph's whole buffer", mla_verify(),
            [](MlaDecodeCall& c) {
              c.kv_indices.values.resize(64, 0);
              c.kv_indices = int_array(Dtype::int32, c.kv_indices.values);
            });
}

}  // namespace

void break_addresses(BrokenCalls& calls) {
  break_table(calls);
  break_indices(calls);
}

}  // namespace attest
