#include "backends/scalar/call_shape.hpp"

#include <algorithm>
#include <string>
#include <variant>

#include "contracts/work_lists.hpp"

namespace attest {
namespace {

/// Collects the first reason against a call.
class Checker {
 public:
  explicit Checker(const Capabilities& capabilities) : can_(capabilities) {}

  void tensor(const char* name, const TensorMeta& meta, std::size_t rank,
              const std::vector<Dtype>& dtypes) {
    const std::string text(name);
    if (meta.shape.size() != rank || meta.strides.size() != rank) {
      no(text + " has " + std::to_string(meta.shape.size()) + " dimensions and " +
         std::to_string(meta.strides.size()) + " strides, not " + std::to_string(rank));
      return;
    }
    if (std::find(dtypes.begin(), dtypes.end(), meta.dtype) == dtypes.end()) {
      no(text + " is " + std::string(attest::name(meta.dtype)) +
         ", which this kernel does not take");
    }
    for (const std::int64_t size : meta.shape) {
      if (size < 0 || size > largest_size) no(text + " has a size of " + std::to_string(size));
    }
    for (const std::int64_t stride : meta.strides) {
      if (stride < 0) no(text + " has a negative stride, " + std::to_string(stride));
    }
    if (rank > 1 && meta.stride(rank - 1) != 1) {
      no(text + " has stride " + std::to_string(meta.stride(rank - 1)) + " inside a row, not 1");
    }
  }
  void q(const char* name, const TensorMeta& meta) { tensor(name, meta, 3, can_.q_dtypes); }
  void kv(const char* name, const TensorMeta& meta, std::size_t rank) {
    tensor(name, meta, rank, can_.kv_dtypes);
  }
  void out(const char* name, const TensorMeta& meta) {
    tensor(name, meta, 3, {Dtype::bf16, Dtype::f16, Dtype::f32});
  }
  void sinks(const std::optional<TensorMeta>& meta) {
    if (meta) tensor("sinks", *meta, 1, {Dtype::bf16, Dtype::f16, Dtype::f32});
  }
  /// Lists whose rows are the call's, over pages of one token.
  void work_lists(const MlaDecodeCall& call) {
    if (const auto error = work_lists_error(call)) return no(*error);
    if (call.page_size != 1) {
      return no("this kernel has work lists over pages of one token, page_size is " +
                std::to_string(call.page_size));
    }
    for (const WorkItem& work : attest::work_lists(call).works) {
      if (work.last_row <= call.q.size(0) || call.q.size(1) <= 16) continue;
      return no("work_info_set[" + std::to_string(work.index) + "] ends at row " +
                std::to_string(work.last_row) + " of " + std::to_string(call.q.size(0)) +
                ": this kernel folds no heads into rows");
    }
  }
  void array(const char* name, const IntArray& array, std::size_t rank) {
    const std::string text(name);
    if (!array.recorded) no("the values of " + text + " were not recorded");
    if (array.meta.shape.size() != rank) {
      no(text + " has " + std::to_string(array.meta.shape.size()) + " dimensions, not " +
         std::to_string(rank));
      return;
    }
    std::int64_t count = 1;
    for (const std::int64_t size : array.meta.shape) {
      if (size < 0 || size > largest_size)
        return no(text + " has a size of " + std::to_string(size));
      count *= size;
    }
    if (array.recorded && count != static_cast<std::int64_t>(array.values.size())) {
      no(text + " holds " + std::to_string(array.values.size()) + " values, its shape says " +
         std::to_string(count));
    }
  }
  void no(std::string reason) {
    if (answer_.yes) answer_ = Answer::no(std::move(reason));
  }
  Answer answer() const { return answer_; }

 private:
  static constexpr std::int64_t largest_size = std::int64_t{1} << 31;
  const Capabilities& can_;
  Answer answer_;
};

void check(const UnifiedCall& call, Checker& c) {
  c.q("q", call.q);
  c.kv("k", call.k, 4);
  c.kv("v", call.v, 4);
  c.out("out", call.out);
  c.sinks(call.sinks);
  c.array("cu_seqlens_q", call.cu_seqlens_q, 1);
  c.array("seqused_k", call.seqused_k, 1);
  c.array("block_table", call.block_table, 2);
  if (call.qq_bias) c.no("qq_bias: a call does not carry the bias's values");
}

void check(const ExtendCall& call, Checker& c) {
  c.q("q_extend", call.q_extend);
  if (call.k_extend) c.kv("k_extend", *call.k_extend, 3);
  if (call.v_extend) c.kv("v_extend", *call.v_extend, 3);
  c.out("o_extend", call.o_extend);
  c.kv("k_buffer", call.k_buffer, 3);
  c.kv("v_buffer", call.v_buffer, 3);
  c.sinks(call.sinks);
  c.array("req_to_token", call.req_to_token, 2);
  c.array("req_pool_indices", call.req_pool_indices, 1);
  c.array("seq_lens", call.seq_lens, 1);
  c.array("extend_seq_lens", call.extend_seq_lens, 1);
  c.array("extend_start_loc", call.extend_start_loc, 1);
  if (call.encoder_lens) c.array("encoder_lens", *call.encoder_lens, 1);
  // The mask may have any rank: only the number of its entries counts.
  if (call.tree_mask) c.array("tree_mask", *call.tree_mask, call.tree_mask->meta.shape.size());
}

void check(const DecodeCall& call, Checker& c) {
  c.q("query", call.query);
  c.kv("k_buffer", call.k_buffer, 3);
  c.kv("v_buffer", call.v_buffer, 3);
  c.out("output", call.output);
  if (call.key) c.kv("key", *call.key, 3);
  if (call.value) c.kv("value", *call.value, 3);
  c.sinks(call.sinks);
  c.array("loc", call.loc, 1);
  c.array("req_to_token", call.req_to_token, 2);
  c.array("req_pool_indices", call.req_pool_indices, 1);
  c.array("seq_lens", call.seq_lens, 1);
  if (call.encoder_lens) c.array("encoder_lens", *call.encoder_lens, 1);
}

void check(const MlaDecodeCall& call, Checker& c) {
  c.q("q", call.q);
  c.kv("kv_buffer", call.kv_buffer, 4);
  c.out("o", call.o);
  c.array("qo_indptr", call.qo_indptr, 1);
  c.array("kv_indptr", call.kv_indptr, 1);
  c.array("kv_indices", call.kv_indices, 1);
  c.array("kv_last_page_lens", call.kv_last_page_lens, 1);
  if (call.persistent && gives_work_lists(call)) c.work_lists(call);
}

void check(const BatchPrefillCall& call, Checker& c) {
  c.q("q", call.q);
  c.kv("k", call.k, 3);
  c.kv("v", call.v, 3);
  c.sinks(call.sink_ptr);
  c.array("cu_seqlens_q", call.cu_seqlens_q, 1);
  c.array("kv_indptr", call.kv_indptr, 1);
  c.array("kv_page_indices", call.kv_page_indices, 1);
}

void check(const PagedRaggedCall& call, Checker& c) {
  c.q("query", call.query);
  c.kv("key_cache", call.key_cache, 4);
  c.kv("value_cache", call.value_cache, 4);
  c.out("out", call.out);
  c.array("kv_indptr", call.kv_indptr, 1);
  c.array("kv_page_indices", call.kv_page_indices, 1);
  c.array("kv_last_page_lens", call.kv_last_page_lens, 1);
}

void check(const LegacyExtendCall& call, Checker& c) {
  c.q("q_extend", call.q_extend);
  c.kv("k_extend", call.k_extend, 3);
  c.kv("v_extend", call.v_extend, 3);
  c.out("o_extend", call.o_extend);
  c.kv("k_buffer", call.k_buffer, 3);
  c.kv("v_buffer", call.v_buffer, 3);
  c.sinks(call.sinks);
  c.array("qo_indptr", call.qo_indptr, 1);
  c.array("kv_indptr", call.kv_indptr, 1);
  c.array("kv_indices", call.kv_indices, 1);
  if (call.custom_mask) c.array("custom_mask", *call.custom_mask, 1);
  if (call.mask_indptr) c.array("mask_indptr", *call.mask_indptr, 1);
}

void check(const VllmCpuCall& call, Checker& c) {
  c.q("query", call.query);
  c.kv("key_cache", call.key_cache, 4);
  c.kv("value_cache", call.value_cache, 4);
  c.out("output", call.output);
  c.sinks(call.s_aux);
  c.array("query_start_loc", call.query_start_loc, 1);
  c.array("seq_lens", call.seq_lens, 1);
  c.array("block_table", call.block_table, 2);
}

}  // namespace

Answer addressable(const Call& call, const Capabilities& capabilities) {
  const Signature signature = signature_of(call);
  if (signature != capabilities.signature) {
    return Answer::no("this backend takes " + std::string(name(capabilities.signature)) +
                      " calls, not " + std::string(name(signature)));
  }
  Checker checker(capabilities);
  std::visit([&](const auto& c) { check(c, checker); }, call);
  return checker.answer();
}

}  // namespace attest
