#include "property_tests/bench/captured_text.hpp"

#include <utility>
#include <vector>

#include "fixtures/json_value.hpp"

namespace attest {
namespace {

std::string torch_name(Dtype dtype) {
  if (dtype == Dtype::bf16) return "bfloat16";
  return dtype == Dtype::f16 ? "float16" : std::string(name(dtype));
}

JsonValue::Array integers(const std::vector<std::int64_t>& values) {
  return {values.begin(), values.end()};
}

JsonValue::Object tensor(const TensorMeta& meta, const char* mem) {
  return {{"dtype", torch_name(meta.dtype)},     {"shape", integers(meta.shape)},
          {"strides", integers(meta.strides)},   {"storage_offset", meta.storage_offset},
          {"storage_bytes", meta.storage_bytes}, {"mem", mem}};
}

JsonValue::Object array(const IntArray& values, const char* mem) {
  JsonValue::Object object = tensor(values.meta, mem);
  if (values.meta.shape.size() == 1) {
    object.push_back({"values", integers(values.values)});
    return object;
  }
  JsonValue::Array rows;
  for (auto row = values.values.begin(); row != values.values.end(); row += values.size(1)) {
    rows.emplace_back(JsonValue::Array{row, row + values.size(1)});
  }
  object.push_back({"values", std::move(rows)});
  return object;
}

JsonValue::Object arguments(const UnifiedCall& c) {
  return {{"q", tensor(c.q, "m0")},
          {"k", tensor(c.k, "m1")},
          {"v", tensor(c.v, "m2")},
          {"out", tensor(c.out, "m3")},
          {"cu_seqlens_q", array(c.cu_seqlens_q, "m4")},
          {"max_seqlen_q", c.max_seqlen_q},
          {"seqused_k", array(c.seqused_k, "m5")},
          {"max_seqlen_k", c.max_seqlen_k},
          {"softmax_scale", c.softmax_scale},
          {"causal", c.causal},
          {"window_size", JsonValue::Array{c.window_size[0], c.window_size[1]}},
          {"block_table", array(c.block_table, "m6")},
          {"softcap", c.softcap},
          {"q_descale", JsonValue()},
          {"k_descale", JsonValue()},
          {"v_descale", JsonValue()},
          {"sinks", JsonValue()}};
}

JsonValue::Array runs(const Problem& p, const SlotMap& slots) {
  JsonValue::Array requests;
  for (std::size_t i = 0; i < p.requests.size(); ++i) {
    std::vector<SlotRun> row;
    for (std::int64_t t = 0; t < p.requests[i].kv_len(); ++t) {
      const std::int64_t slot = slots.slot(i, t);
      if (row.empty() || row.back().first + row.back().count != slot) row.push_back({slot, 0});
      ++row.back().count;
    }
    JsonValue::Array pairs;
    for (const SlotRun& run : row) pairs.emplace_back(JsonValue::Array{run.first, run.count});
    requests.emplace_back(std::move(pairs));
  }
  return requests;
}

JsonValue::Object truth(const Problem& p, const SlotMap& slots) {
  JsonValue::Array committed, fresh, live;
  for (const Request& r : p.requests) {
    committed.emplace_back(r.committed);
    fresh.emplace_back(r.new_tokens);
    live.emplace_back(r.live);
  }
  const Model& m = p.model;
  return {{"committed", std::move(committed)},
          {"new_tokens", std::move(fresh)},
          {"live", std::move(live)},
          {"num_draft_tokens", p.num_draft_tokens ? JsonValue(*p.num_draft_tokens) : JsonValue()},
          {"page_size", p.pool.page_size},
          {"context_len", p.context_len},
          {"use_mla", m.mla},
          {"layer_scaling", m.softmax_scale},
          {"layer_logit_cap", m.softcap},
          {"layer_sliding_window_size", -1},
          {"num_q_heads", m.num_q_heads},
          {"num_kv_heads", m.num_kv_heads},
          {"qk_head_dim", m.head_dim},
          {"v_head_dim", m.v_head_dim},
          {"kv_cache_dtype", "auto"},
          {"topk", p.topk},
          {"pool_tokens", (p.pool.num_pages - 1) * p.pool.page_size},
          {"req_to_token_runs", runs(p, slots)}};
}

}  // namespace

std::string captured_text(const UnifiedCall& call, const Problem& problem, const SlotMap& slots) {
  return to_line(JsonValue::Object{{"id", "bench"},
                                   {"kernel", "unified_attention"},
                                   {"mode", name(problem.mode)},
                                   {"path", name(problem.path)},
                                   {"args", arguments(call)},
                                   {"truth", truth(problem, slots)}});
}

}  // namespace attest
