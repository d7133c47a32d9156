#include "contracts/rules/call_tensors.hpp"

#include <optional>

#include "contracts/work_lists.hpp"

namespace attest {
namespace {

using enum TensorRole;

/// Collects what is there.
class List {
 public:
  List& add(std::string_view name, TensorRole role, const TensorMeta& tensor) {
    tensors_.push_back({name, role, &tensor});
    return *this;
  }
  List& add(std::string_view name, TensorRole role, const IntArray& array) {
    return add(name, role, array.meta);
  }
  template <class T>
  List& add(std::string_view name, TensorRole role, const std::optional<T>& maybe) {
    return maybe ? add(name, role, *maybe) : *this;
  }
  std::vector<NamedTensor> take() { return std::move(tensors_); }

 private:
  std::vector<NamedTensor> tensors_;
};

}  // namespace

std::vector<NamedTensor> tensors_of(const UnifiedCall& c) {
  List list;
  list.add("q", query, c.q).add("k", key, c.k).add("v", value, c.v).add("out", output, c.out);
  list.add("cu_seqlens_q", index, c.cu_seqlens_q).add("seqused_k", index, c.seqused_k);
  list.add("block_table", index, c.block_table);
  list.add("q_descale", feature, c.q_descale).add("k_descale", feature, c.k_descale);
  list.add("v_descale", feature, c.v_descale).add("sinks", sinks, c.sinks);
  return list.add("qq_bias", feature, c.qq_bias).take();
}

std::vector<NamedTensor> tensors_of(const ExtendCall& c) {
  List list;
  list.add("q_extend", query, c.q_extend).add("k_extend", key, c.k_extend);
  list.add("v_extend", value, c.v_extend).add("o_extend", output, c.o_extend);
  list.add("k_buffer", key, c.k_buffer).add("v_buffer", value, c.v_buffer);
  list.add("req_to_token", index, c.req_to_token);
  list.add("req_pool_indices", index, c.req_pool_indices).add("seq_lens", index, c.seq_lens);
  list.add("extend_seq_lens", index, c.extend_seq_lens);
  list.add("extend_start_loc", index, c.extend_start_loc);
  list.add("encoder_lens", index, c.encoder_lens).add("sinks", sinks, c.sinks);
  return list.add("tree_mask", feature, c.tree_mask).take();
}

std::vector<NamedTensor> tensors_of(const DecodeCall& c) {
  List list;
  list.add("query", query, c.query).add("k_buffer", key, c.k_buffer);
  list.add("v_buffer", value, c.v_buffer).add("output", output, c.output);
  list.add("key", key, c.key).add("value", value, c.value).add("loc", index, c.loc);
  list.add("attn_logits", output, c.attn_logits).add("req_to_token", index, c.req_to_token);
  list.add("req_pool_indices", index, c.req_pool_indices).add("seq_lens", index, c.seq_lens);
  return list.add("encoder_lens", index, c.encoder_lens).add("sinks", sinks, c.sinks).take();
}

std::vector<NamedTensor> tensors_of(const MlaDecodeCall& c) {
  List list;
  list.add("q", query, c.q).add("kv_buffer", key, c.kv_buffer).add("o", output, c.o);
  list.add("qo_indptr", index, c.qo_indptr).add("kv_indptr", index, c.kv_indptr);
  list.add("kv_indices", index, c.kv_indices);
  list.add("kv_last_page_lens", index, c.kv_last_page_lens);
  for (const auto& [name, array] : named_work_lists(c)) list.add(name, index, array);
  return list.add("q_scale", feature, c.q_scale).add("kv_scale", feature, c.kv_scale).take();
}

std::vector<NamedTensor> tensors_of(const BatchPrefillCall& c) {
  List list;
  list.add("q", query, c.q).add("k", key, c.k).add("v", value, c.v);
  list.add("cu_seqlens_q", index, c.cu_seqlens_q).add("kv_indptr", index, c.kv_indptr);
  list.add("kv_page_indices", index, c.kv_page_indices).add("sink_ptr", sinks, c.sink_ptr);
  list.add("q_descale", feature, c.q_descale).add("k_descale", feature, c.k_descale);
  return list.add("v_descale", feature, c.v_descale).take();
}

std::vector<NamedTensor> tensors_of(const PagedRaggedCall& c) {
  List list;
  list.add("out", output, c.out).add("workspace_buffer", output, c.workspace_buffer);
  list.add("query", query, c.query).add("key_cache", key, c.key_cache);
  list.add("value_cache", value, c.value_cache).add("kv_indptr", index, c.kv_indptr);
  list.add("kv_page_indices", index, c.kv_page_indices);
  list.add("kv_last_page_lens", index, c.kv_last_page_lens);
  return list.add("k_scale", feature, c.k_scale).add("v_scale", feature, c.v_scale).take();
}

std::vector<NamedTensor> tensors_of(const LegacyExtendCall& c) {
  List list;
  list.add("q_extend", query, c.q_extend).add("k_extend", key, c.k_extend);
  list.add("v_extend", value, c.v_extend).add("o_extend", output, c.o_extend);
  list.add("k_buffer", key, c.k_buffer).add("v_buffer", value, c.v_buffer);
  list.add("qo_indptr", index, c.qo_indptr).add("kv_indptr", index, c.kv_indptr);
  list.add("kv_indices", index, c.kv_indices).add("custom_mask", feature, c.custom_mask);
  return list.add("mask_indptr", index, c.mask_indptr).add("sinks", sinks, c.sinks).take();
}

std::vector<NamedTensor> tensors_of(const VllmCpuCall& c) {
  List list;
  list.add("query", query, c.query).add("key_cache", key, c.key_cache);
  list.add("value_cache", value, c.value_cache).add("output", output, c.output);
  list.add("query_start_loc", index, c.query_start_loc).add("seq_lens", index, c.seq_lens);
  return list.add("block_table", index, c.block_table).add("s_aux", sinks, c.s_aux).take();
}

}  // namespace attest
