#include "contracts/rules/work_lists.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "contracts/rules/finding_text.hpp"
#include "contracts/rules/work_tiles.hpp"

namespace attest {
namespace {

void can_be_read(const MlaDecodeCall& call, const Truth&, Report& report) {
  if (!call.persistent || !gives_work_lists(call)) return;
  for (const auto& [name, list] : named_work_lists(call)) {
    if (!list || recorded(*list, name, report)) continue;
    return;
  }
  if (const auto error = work_lists_error(call)) {
    report.add("the set of work lists", "unreadable (" + *error + ")",
               "work_indptr (parts + 1), work_info_set (works, 8), reduce_indptr (tiles + 1), "
               "reduce_final_map (tiles, 2) and reduce_partial_map, together");
  }
}

void are_int32(const MlaDecodeCall& call, const Truth&, Report& report) {
  if (!call.persistent) return;
  for (const auto& [name, list] : named_work_lists(call)) {
    if (!list || list->meta.dtype == Dtype::int32) continue;
    report.add(std::string(name) + ".dtype", std::string(attest::name(list->meta.dtype)), "int32");
  }
}

/// Offsets that begin at 0, never decrease and end inside the list they cut.
void check_offsets(std::string_view name, const std::vector<std::int64_t>& offsets,
                   std::string_view list, std::int64_t entries, Report& report) {
  if (offsets.empty()) return;
  if (offsets.front() != 0) report.add(entry(name, 0), std::to_string(offsets.front()), "0");
  for (std::size_t i = 1; i < offsets.size(); ++i) {
    if (offsets[i] >= offsets[i - 1]) continue;
    report.add(entry(name, i), std::to_string(offsets[i]),
               std::to_string(offsets[i - 1]) + " or more, the entry before it");
  }
  if (offsets.back() > entries) {
    report.add(entry(name, offsets.size() - 1), std::to_string(offsets.back()),
               "at most " + std::to_string(entries) + ", the entries of " + std::string(list));
  }
}

void offsets_cut_their_lists(const MlaDecodeCall& call, const Truth&, Report& report) {
  const std::optional<WorkArrays> lists = work_arrays(call);
  if (!lists || !judged_work_lists(call)) return;
  check_offsets("work_indptr", lists->work_indptr.values, "work_info_set",
                lists->work_info_set.size(0), report);
  check_offsets("reduce_indptr", lists->reduce_indptr.values, "reduce_partial_map",
                lists->reduce_partial_map.size(0), report);
}

void works_lie_in_their_request(const MlaDecodeCall& call, const Truth&, Report& report) {
  if (!judged_work_lists(call)) return;
  const WorkTiles tiles(call);
  for (const WorkItem& work : tiles.lists().works) {
    if (const auto error = tiles.misplaced(work)) {
      report.add(entry("work_info_set", work.index), error->got, error->expected);
    }
  }
}

void keys_are_covered_once(const MlaDecodeCall& call, const Truth& truth, Report& report) {
  if (!judged_work_lists(call)) return;
  const WorkTiles tiles(call);
  for (const RowCover& cover : tiles.wrong_covers(truth.problem)) {
    report.add("row " + std::to_string(cover.row) + " of request " + std::to_string(cover.request),
               cover.got, cover.expected);
  }
}

void keys_after_reach_the_end(const MlaDecodeCall& call, const Truth& truth, Report& report) {
  if (!judged_work_lists(call)) return;
  const WorkTiles tiles(call);
  for (const WorkItem& work : tiles.lists().works) {
    if (WorkTiles::is_empty(work) || tiles.misplaced(work)) continue;
    if (tiles.is_padding(work, truth.problem)) continue;
    const std::int64_t expected = tiles.tokens_after(work);
    if (work.keys_after == expected) continue;
    report.add(entry("work_info_set", work.index, 6), std::to_string(work.keys_after),
               std::to_string(expected) + ", the request's tokens behind key " +
                   std::to_string(work.last_key));
  }
}

void partials_are_apart(const MlaDecodeCall& call, const Truth&, Report& report) {
  if (!judged_work_lists(call)) return;
  const WorkTiles tiles(call);
  const std::int64_t room = tiles.partial_rows();
  std::map<std::int64_t, const WorkItem*> taken;  // by the row behind it
  for (const WorkItem& work : tiles.lists().works) {
    if (work.partial == -1 || work.last_row <= work.first_row) continue;
    const std::int64_t rows = std::min(work.last_row - work.first_row, room + 1);
    const std::string place = entry("work_info_set", work.index, 1);
    if (work.partial < 0 || work.partial > room - rows) {
      report.add(place, std::to_string(work.partial),
                 "-1, or rows inside the " + std::to_string(room) +
                     " that reduce_partial_map and max_seqlen_q make room for");
      continue;
    }
    const auto after = taken.upper_bound(work.partial);
    if (after != taken.end() && after->second->partial < work.partial + rows) {
      report.add(place, std::to_string(work.partial),
                 "rows that no other work writes: work_info_set[" +
                     std::to_string(after->second->index) + "] begins at " +
                     std::to_string(after->second->partial));
      continue;
    }
    taken[work.partial + rows] = &work;
  }
}

void partials_are_merged_once(const MlaDecodeCall& call, const Truth& truth, Report& report) {
  if (!judged_work_lists(call)) return;
  const WorkTiles tiles(call);
  for (const MergeError& error : tiles.wrong_merges(truth.problem)) {
    report.add(error.where, error.got, error.expected);
  }
}

void check_plan(std::string_view name, const WorkPlan& plan, const MlaDecodeCall& call,
                Report& report) {
  const auto check = [&](std::string_view field, const std::string& got,
                         const std::string& expected, std::string_view whose) {
    if (got == expected) return;
    report.add(std::string(name) + "." + std::string(field), got,
               expected + ", " + std::string(whose));
  };
  const auto text = [](const std::optional<Dtype>& dtype) {
    return dtype ? std::string(attest::name(*dtype)) : std::string("not passed");
  };
  // Memory for more rows than the launch has holds its lists too.
  const bool roomy = name == "sized_for" && plan.max_seqlen_qo > call.max_seqlen_q;
  if (!roomy) {
    check("max_seqlen_qo", std::to_string(plan.max_seqlen_qo), std::to_string(call.max_seqlen_q),
          "the launch's max_seqlen_q");
  }
  check("num_heads", std::to_string(plan.num_heads), std::to_string(call.q.size(1)),
        "the heads of q");
  check("dtype_q", text(plan.dtype_q), std::string(attest::name(call.q.dtype)), "q's");
  check("dtype_kv", text(plan.dtype_kv), std::string(attest::name(call.kv_buffer.dtype)),
        "kv_buffer's");
}

/// Works over the same rows of a request are the splits of its keys.
void splits_are_the_planned(std::int64_t most, const MlaDecodeCall& call, Report& report) {
  if (most < 1 || !judged_work_lists(call)) return;
  const WorkTiles tiles(call);
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> splits;  // by request, first row
  for (const WorkItem& work : tiles.lists().works) {
    if (!WorkTiles::is_empty(work)) ++splits[{work.request, work.first_row}];
  }
  for (const auto& [tile, count] : splits) {
    if (count <= most) continue;
    report.add(Severity::policy,
               "the number of works from row " + std::to_string(tile.second) + " of request " +
                   std::to_string(tile.first),
               std::to_string(count), std::to_string(most) + " or less = planned_for.max_splits");
  }
}

void plan_is_the_launchs(const MlaDecodeCall& call, const Truth&, Report& report) {
  if (!call.persistent) return;
  if (call.sized_for) check_plan("sized_for", *call.sized_for, call, report);
  if (call.planned_for) {
    check_plan("planned_for", *call.planned_for, call, report);
    splits_are_the_planned(call.planned_for->max_splits, call, report);
  }
  if (!call.sized_for || !call.planned_for) return;
  const auto flag = [](bool value) { return std::string(value ? "true" : "false"); };
  const auto agree = [&](std::string_view field, const std::string& got,
                         const std::string& expected) {
    if (got == expected) return;
    report.add("planned_for." + std::string(field), got, expected + ", as the lists were sized");
  };
  agree("fast_mode", flag(call.planned_for->fast_mode), flag(call.sized_for->fast_mode));
  agree("intra_batch_mode", flag(call.planned_for->intra_batch_mode),
        flag(call.sized_for->intra_batch_mode));
}

constexpr std::string_view planner =
    "ROCm/aiter aiter/ops/attention.py: get_mla_metadata_v1; "
    "csrc/kernels/mla/metadata/v1_2_device.cuh";

constexpr Rule rules[] = {
    {.id = "work_lists.can_be_read",
     .says = "a persistent launch has all five work lists, of their shapes",
     .why = "the kernel takes sizes and strides for granted: a list of another shape is read past "
            "its end",
     .source = planner,
     .severity = Severity::fault,
     .mla_decode = can_be_read},
    {.id = "work_lists.are_int32",
     .says = "the work lists are int32",
     .why = "the kernel reads 32-bit words: every second word of an int64 list is a zero",
     .source = planner,
     .severity = Severity::fault,
     .mla_decode = are_int32},
    {.id = "work_lists.offsets_cut_their_lists",
     .says = "work_indptr and reduce_indptr begin at 0, never decrease and end inside their lists",
     .why = "compute unit c runs the works between entries c and c + 1: a gap leaves works out, an "
            "end past the list runs what was never written",
     .source = planner,
     .severity = Severity::fault,
     .mla_decode = offsets_cut_their_lists},
    {.id = "work_info.lies_in_its_request",
     .says = "a work's rows and keys are some of the request's that it names",
     .why = "rows of another request are overwritten with this one's keys, keys of another request "
            "are read, and rows past the batch lie outside q",
     .source = planner,
     .severity = Severity::wrong,
     .mla_decode = works_lie_in_their_request},
    {.id = "work_info.covers_every_key_once",
     .says = "the works of a row cut its visible keys into parts: each key in one of them",
     .why = "lists of an earlier batch, of shorter lengths or of one query row leave keys or whole "
            "rows out; a key in two parts counts twice",
     .source = "vllm-project/vllm#45227: verify planned for one row; ROCm/aiter#4964: lists of "
               "other query offsets",
     .severity = Severity::wrong,
     .mla_decode = keys_are_covered_once},
    {.id = "work_info.keys_after_reach_the_end",
     .says = "word 6 of a work is the number of the request's tokens behind its keys",
     .why = "a row's position counts back from there: another number moves the causal diagonal",
     .source = planner,
     .severity = Severity::wrong,
     .mla_decode = keys_after_reach_the_end},
    {.id = "work_info.partials_are_apart",
     .says = "partial results have rows of their own inside their buffer",
     .why = "two works that write one row leave the last one's; rows past the buffer are somebody "
            "else's memory",
     .source = "ROCm/aiter aiter/mla.py: the buffer has reduce_partial_map.size(0) * max_seqlen_q "
               "rows",
     .severity = Severity::fault,
     .mla_decode = partials_are_apart},
    {.id = "reduce.merges_every_partial_once",
     .says = "the partial results of a tile are merged once, together, into its rows",
     .why = "a partial left out drops its keys, one merged twice counts them twice, and one that "
            "nobody wrote brings in what the buffer held",
     .source = "ROCm/aiter#4420: splits nobody wrote leak through mla_reduce_v1; "
               "csrc/kernels/mla/reduce.cu",
     .severity = Severity::wrong,
     .mla_decode = partials_are_merged_once},
    {.id = "work_plan.is_the_launchs",
     .says = "the lists were sized and made for the launch's rows, heads and types",
     .why = "the planner folds heads and cuts tiles by them: other types or one row instead of "
            "four give lists that fit another kernel, and no error",
     .source = "vllm-project/vllm#46997: types not passed; vllm-project/vllm#45227",
     .severity = Severity::wrong,
     .mla_decode = plan_is_the_launchs},
};

}  // namespace

std::span<const Rule> work_list_rules() { return rules; }

}  // namespace attest
