#include "backends/hip/graph_run.hpp"

#include <algorithm>
#include <cstring>

namespace attest::hip {
namespace {

using Kind = MetadataArray::Kind;
using Values = std::vector<std::int64_t>;

constexpr std::int64_t keys_of_a_partition = 32;  // PlantedFault::partitions_of_32_keys

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

const MetadataArray* find(const std::vector<MetadataArray>& arrays, Kind kind) {
  const auto found = std::find_if(arrays.begin(), arrays.end(),
                                  [&](const MetadataArray& a) { return a.kind == kind; });
  return found == arrays.end() ? nullptr : &*found;
}

/// Longest of the call's requests.
std::int64_t longest_of(const PagedArgs& args, const std::vector<MetadataArray>& arrays) {
  const MetadataArray* const lengths = find(arrays, Kind::lengths);
  if (lengths == nullptr || lengths->values.empty()) return args.max_seqlen_k;
  return *std::max_element(lengths->values.begin(), lengths->values.end());
}

/// The arguments of a launcher with the fault, made for requests of at most `longest` keys: it
/// makes them the same way without a graph.
PagedArgs arguments_with(GraphFault fault, PagedArgs args, std::int64_t longest) {
  if (fault == GraphFault::maximum_of_capture) args.max_seqlen_k = longest;
  if (fault == GraphFault::partitions_of_capture) {
    args.splits = static_cast<std::int32_t>(
        std::clamp<std::int64_t>(ceil_div(longest, keys_of_a_partition), 1, args.splits));
  }
  if (fault == GraphFault::window_of_capture && args.window_left >= longest) args.window_left = -1;
  if (fault == GraphFault::table_laid_out_by_the_batch) {
    args.table_stride = ceil_div(longest, args.page_size);
  }
  return args;
}

/// The table as such a launcher writes it.
Values table_with(GraphFault fault, const PagedArgs& args, Values table, std::int64_t longest) {
  if (fault != GraphFault::table_laid_out_by_the_batch) return table;
  const auto from = static_cast<std::size_t>(args.table_stride);
  const auto to = static_cast<std::size_t>(ceil_div(longest, args.page_size));
  for (std::size_t i = 0; i * from < table.size(); ++i) {
    for (std::size_t j = 0; j < to; ++j) table[i * to + j] = table[i * from + j];
  }
  return table;
}

/// Values i * total / parts: a batch of requests as equal as they can be.
Values even(std::size_t count, std::int64_t total, std::int64_t parts) {
  Values values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = static_cast<std::int64_t>(i) * total / std::max<std::int64_t>(parts, 1);
  }
  return values;
}

/// What the array held while the graph was captured.
Values at_capture(const MetadataArray& array, const PagedArgs& args, Captured captured) {
  const std::size_t count = array.values.size();
  const std::int64_t batch = args.batch;
  const bool is_long = captured == Captured::long_;
  if (captured == Captured::same || array.values.empty()) return array.values;
  switch (array.kind) {
    case Kind::first_rows:
      return even(count, is_long ? args.total_rows : std::min(batch, args.total_rows), batch);
    case Kind::lengths:
      return Values(count, is_long ? args.table_stride * args.page_size : 1);
    case Kind::page_starts:
      return even(count, is_long ? array.values.back() : std::min(batch, array.values.back()),
                  batch);
    case Kind::last_page_lens:
      return Values(count, is_long ? args.page_size : 1);
    case Kind::table:
      break;  // pages that exist, other ones than the call's
  }
  return Values(count, array.values.front());
}

std::int64_t longest_at_capture(const PagedArgs& args, const std::vector<MetadataArray>& arrays,
                                Captured captured) {
  if (captured == Captured::same) return longest_of(args, arrays);
  return captured == Captured::long_ ? args.table_stride * args.page_size : 1;
}

/// The contents of an array at replay, as the host writes them.
Values at_replay(const GraphCall& call, const MetadataArray& array, const GraphPlan& plan,
                 GraphFault fault) {
  Values values = array.values;
  const Values before = at_capture(array, call.args, plan.captured);
  const auto stale_lanes = [&](std::size_t offset, std::size_t width) {
    for (std::size_t i = 0; i < call.live.size(); ++i) {
      if (call.live[i]) continue;
      const std::size_t at = (i + offset) * width;
      std::copy_n(before.begin() + static_cast<std::ptrdiff_t>(at), width,
                  values.begin() + static_cast<std::ptrdiff_t>(at));
    }
  };
  if (array.kind == Kind::lengths && fault == GraphFault::padding_lengths_stale) stale_lanes(0, 1);
  if (array.kind == Kind::first_rows && fault == GraphFault::padding_offsets_stale) {
    stale_lanes(1, 1);
  }
  if (array.kind != Kind::table) return values;
  if (fault == GraphFault::padding_takes_lane_0) {
    const auto width = static_cast<std::size_t>(call.args.table_stride);
    for (std::size_t i = 0; i < call.live.size(); ++i) {
      const auto lane = values.begin() + static_cast<std::ptrdiff_t>(i * width);
      if (!call.live[i]) std::copy_n(values.begin(), width, lane);
    }
  }
  return table_with(fault, call.args, std::move(values), longest_of(call.args, call.arrays));
}

/// Writes the call's arrays. With lengths_inside the lengths are the graph's own work.
void put_arrays(const GraphCall& call, const GraphPlan& plan, GraphFault fault) {
  for (const MetadataArray& array : call.arrays) {
    const std::vector<std::byte> bytes =
        bytes_of_integers(at_replay(call, array, plan, fault), array.wide);
    if (array.kind == Kind::lengths && plan.lengths_inside) continue;
    if (array.kind == Kind::lengths && fault == GraphFault::lengths_added_on_the_host) {
      call.session.metadata(bytes);  // `lengths + new`: another array, which no launch knows
      continue;
    }
    call.session.write(array.memory, bytes);
  }
}

/// Committed lengths in memory of their own, and the launch that adds the new tokens.
LengthsCall lengths_call(const GraphCall& call) {
  const MetadataArray& lengths = *find(call.arrays, Kind::lengths);
  const MetadataArray* const rows = find(call.arrays, Kind::first_rows);
  Values committed = lengths.values;
  for (std::size_t i = 0; i < committed.size(); ++i) {
    committed[i] -= rows != nullptr ? rows->values[i + 1] - rows->values[i] : call.args.rows_each;
  }
  LengthsCall result;
  result.committed = {call.session.metadata(bytes_of_integers(committed, lengths.wide)),
                      lengths.wide ? 1 : 0};
  result.lengths = lengths.memory;
  result.first_rows = call.args.first_rows;
  result.rows_each = call.args.rows_each;
  result.batch = call.args.batch;
  return result;
}

/// The same kernel over full tables, everything it writes its own.
void run_large_eager_call(const GraphCall& call) {
  PagedArgs args = call.args;
  const std::int64_t outputs = args.total_rows * args.num_q_heads;
  const auto floats = [&](std::int64_t count) {
    return static_cast<float*>(call.session.scratch(static_cast<std::size_t>(count) * 4));
  };
  args.out = {floats(outputs * args.v_head_dim), args.num_q_heads * std::int64_t{args.v_head_dim},
              args.v_head_dim};
  args.lse = floats(outputs);
  args.splits = std::min(args.splits + 3, 128);
  args.part_out = floats(outputs * args.splits * args.v_head_dim);
  args.part_stats = floats(outputs * args.splits * 2);
  for (const MetadataArray& array : call.arrays) {
    const void* const memory = call.session.metadata(
        bytes_of_integers(at_capture(array, args, Captured::long_), array.wide));
    const auto* const narrow = static_cast<const std::int32_t*>(memory);
    if (array.kind == Kind::first_rows) args.first_rows = narrow;
    if (array.kind == Kind::lengths) args.lengths.data = memory;
    if (array.kind == Kind::table) args.table.data = memory;
    if (array.kind == Kind::page_starts) args.page_starts = narrow;
    if (array.kind == Kind::last_page_lens) args.last_page_lens = narrow;
  }
  call.session.run([&](Stream stream) { call.launch(stream, args, call.row_groups); });
}

}  // namespace

std::vector<std::byte> bytes_of_integers(const std::vector<std::int64_t>& values, bool wide) {
  const std::size_t each = wide ? sizeof(std::int64_t) : sizeof(std::int32_t);
  std::vector<std::byte> bytes((values.size() + 1) * each);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto narrow = static_cast<std::int32_t>(values[i]);
    std::memcpy(bytes.data() + i * each,
                wide ? static_cast<const void*>(&values[i]) : static_cast<const void*>(&narrow),
                each);
  }
  return bytes;
}

void run_eagerly(const GraphCall& call, GraphFault fault) {
  const std::int64_t longest = longest_of(call.args, call.arrays);
  const PagedArgs args = arguments_with(fault, call.args, longest);
  const MetadataArray* const table = find(call.arrays, Kind::table);
  if (fault == GraphFault::table_laid_out_by_the_batch) {
    call.session.write(
        table->memory,
        bytes_of_integers(table_with(fault, call.args, table->values, longest), table->wide));
  }
  call.session.run([&](Stream stream) { call.launch(stream, args, call.row_groups); });
}

std::vector<std::string> run_in_graph(const GraphCall& call, const GraphPlan& plan,
                                      GraphFault fault) {
  LaunchSession& session = call.session;
  for (const MetadataArray& array : call.arrays) {
    session.write(array.memory,
                  bytes_of_integers(at_capture(array, call.args, plan.captured), array.wide));
  }
  const PagedArgs frozen =
      arguments_with(fault, call.args, longest_at_capture(call.args, call.arrays, plan.captured));
  const bool inside = plan.lengths_inside && find(call.arrays, Kind::lengths) != nullptr;
  const LengthsCall lengths = inside ? lengths_call(call) : LengthsCall{};
  const std::unique_ptr<LaunchGraph> graph = session.capture([&](Stream stream) {
    if (inside) call.lengths(stream, lengths);
    call.launch(stream, frozen, call.row_groups);
  });
  if (plan.eager_between) run_large_eager_call(call);
  // Memory given back belongs to someone else, who has put something there.
  std::vector<std::byte> others;
  if (fault == GraphFault::workspace_given_back && plan.eager_between && frozen.splits > 1) {
    others.assign(static_cast<std::size_t>(frozen.splits) * 2 * sizeof(float), std::byte{0x5a});
    session.write(frozen.part_stats, others);
  }
  put_arrays(call, {plan.captured, plan.eager_between, inside}, fault);
  graph->replay();
  std::vector<std::byte> now(others.size());
  if (!others.empty()) session.read(now, frozen.part_stats);
  if (now == others) return {};
  return {"the graph wrote into a workspace that had been given back"};
}

}  // namespace attest::hip
