// Every argument check of the AMX kernels, made before the launch. The comments say what the
// production kernels of these signatures do instead (docs/contracts.md).

#include <string>

#include "backends/amx/call_arguments.hpp"

namespace attest::amx {
namespace {

void require(bool ok, const std::string& message) {
  if (!ok) throw Refusal(message);
}

std::string at(const char* array, std::size_t i, std::int64_t value) {
  return std::string(array) + "[" + std::to_string(i) + "] = " + std::to_string(value);
}

void length_is(const char* name, const IntArray& array, std::size_t batch) {
  require(array.values.size() == batch, std::string(name) + " has " +
                                            std::to_string(array.values.size()) +
                                            " entries, seq_lens has " + std::to_string(batch));
}

/// K, V, out and heads fit together. Production extend never looks at the output's size, production
/// decode at neither its layout nor the heads' divisibility.
void check_shapes(const TensorMeta& q, const TensorMeta& k, const TensorMeta& v,
                  const TensorMeta& out, Defect defect) {
  require(k.size(1) >= 1 && k.size(1) == v.size(1), "k_buffer has " + std::to_string(k.size(1)) +
                                                        " heads, v_buffer " +
                                                        std::to_string(v.size(1)));
  require(q.size(1) % k.size(1) == 0 || defect == Defect::left_over_heads_skipped,
          std::to_string(q.size(1)) + " query heads are no multiple of " +
              std::to_string(k.size(1)) + " kv heads");
  require(k.size(2) == q.size(2), "k_buffer rows hold " + std::to_string(k.size(2)) +
                                      " elements, q rows " + std::to_string(q.size(2)));
  require(v.size(2) >= out.size(2), "v_buffer rows hold " + std::to_string(v.size(2)) +
                                        " elements, out rows " + std::to_string(out.size(2)));
  require(out.size(0) == q.size(0) && out.size(1) == q.size(1),
          "out has " + std::to_string(out.size(0)) + " x " + std::to_string(out.size(1)) +
              " rows and heads, q has " + std::to_string(q.size(0)) + " x " +
              std::to_string(q.size(1)));
  require(out.strides == contiguous(out.dtype, out.shape).strides ||
              defect == Defect::output_taken_as_contiguous,
          "out is not contiguous");
}

void check_sinks(const std::optional<TensorMeta>& sinks, const TensorMeta& q) {
  if (!sinks) return;
  require(sinks->size(0) == q.size(1), "sinks has " + std::to_string(sinks->size(0)) +
                                           " entries for " + std::to_string(q.size(1)) + " heads");
}

/// Every slot that the kernel will read through row `pool_row`, columns [first, first + count).
/// Production extend checks none of them, production decode only from above.
void check_slots(const IntArray& table, std::int64_t pool_row, std::size_t request,
                 std::int64_t first, std::int64_t count, std::int64_t slots) {
  require(pool_row >= 0 && pool_row < table.size(0),
          at("req_pool_indices", request, pool_row) + ", outside the " +
              std::to_string(table.size(0)) + " rows of req_to_token");
  require(first >= 0 && first <= table.size(1) && count <= table.size(1) - first,
          "request " + std::to_string(request) + " needs columns [" + std::to_string(first) + ", " +
              std::to_string(first + count) + ") of req_to_token, which has " +
              std::to_string(table.size(1)));
  const std::int64_t base = pool_row * table.size(1) + first;
  for (std::int64_t j = 0; j < count; ++j) {
    const std::int64_t slot = table.values[static_cast<std::size_t>(base + j)];
    require(slot >= 0 && slot < slots,
            "req_to_token[" + std::to_string(pool_row) + "][" + std::to_string(first + j) +
                "] = " + std::to_string(slot) + " is outside the pool's " + std::to_string(slots) +
                " slots");
  }
}

/// Without encoder_lens production takes seq_lens for the number of encoder tokens.
void check_encoder(bool is_cross_attn, const std::optional<IntArray>& encoder_lens, Defect defect) {
  require(!is_cross_attn || encoder_lens || defect == Defect::cross_attention_takes_seq_lens,
          "cross attention needs encoder_lens");
}

std::int64_t encoder_of(const std::optional<IntArray>& encoder_lens, std::size_t i) {
  const std::int64_t length = encoder_lens ? (*encoder_lens)[i] : 0;
  require(length >= 0, at("encoder_lens", i, length) + " is negative");
  return length;
}

void check_tree_mask(const ExtendCall& call) {
  if (!call.tree_mask) return;
  require(!call.is_cross_attn, "tree_mask is not taken in cross attention");
  require(call.sliding_window_size <= 0, "tree_mask is not taken together with a window");
  for (std::size_t i = 0; i < call.extend_seq_lens.values.size(); ++i) {
    require(call.extend_seq_lens[i] == call.max_len_extend,
            at("extend_seq_lens", i, call.extend_seq_lens[i]) +
                ", tree_mask needs max_len_extend = " + std::to_string(call.max_len_extend) +
                " for every request");
  }
  const auto side = static_cast<std::size_t>(call.max_len_extend);
  require(call.tree_mask->values.size() == call.seq_lens.values.size() * side * side,
          "tree_mask has " + std::to_string(call.tree_mask->values.size()) +
              " entries, not batch * max_len_extend^2");
}

/// Rows [start, start + length) of q lie in q and belong to no other request: the production kernel
/// reads and writes past the tensors, or lets two requests race for a row.
void check_rows(const ExtendCall& call) {
  const std::int64_t total = call.q_extend.size(0);
  std::vector<bool> taken(static_cast<std::size_t>(total));
  for (std::size_t i = 0; i < call.seq_lens.values.size(); ++i) {
    const std::int64_t start = call.extend_start_loc[i];
    const std::int64_t length = call.extend_seq_lens[i];
    require(length >= 0, at("extend_seq_lens", i, length) + " is negative");
    require(start >= 0 && start <= total && length <= total - start,
            at("extend_start_loc", i, start) + " with " + std::to_string(length) +
                " new tokens runs past the " + std::to_string(total) + " rows of q_extend");
    for (std::int64_t row = start; row < start + length; ++row) {
      require(!taken[static_cast<std::size_t>(row)], at("extend_start_loc", i, start) +
                                                         " covers row " + std::to_string(row) +
                                                         ", which an earlier request has");
      taken[static_cast<std::size_t>(row)] = true;
    }
  }
}

void check_new_kv(const ExtendCall& call) {
  if (call.is_cross_attn) return;
  require(call.k_extend && call.v_extend, "k_extend and v_extend are required");
  require(call.k_extend->size(0) >= call.q_extend.size(0) &&
              call.v_extend->size(0) >= call.q_extend.size(0),
          "k_extend or v_extend has fewer rows than q_extend");
  require(call.k_extend->size(1) == call.k_buffer.size(1) &&
              call.v_extend->size(1) == call.k_buffer.size(1),
          "k_extend or v_extend has another number of heads than k_buffer");
  require(call.k_extend->size(2) == call.k_buffer.size(2) &&
              call.v_extend->size(2) >= call.o_extend.size(2),
          "k_extend or v_extend rows are not as long as the pool's");
}

}  // namespace

void check_extend(const ExtendCall& call, Defect defect) {
  const std::size_t batch = call.seq_lens.values.size();
  length_is("req_pool_indices", call.req_pool_indices, batch);
  length_is("extend_seq_lens", call.extend_seq_lens, batch);
  length_is("extend_start_loc", call.extend_start_loc, batch);
  if (call.encoder_lens) length_is("encoder_lens", *call.encoder_lens, batch);
  check_encoder(call.is_cross_attn, call.encoder_lens, defect);
  check_shapes(call.q_extend, call.k_buffer, call.v_buffer, call.o_extend, defect);
  check_sinks(call.sinks, call.q_extend);
  check_new_kv(call);
  check_rows(call);
  check_tree_mask(call);
  for (std::size_t i = 0; i < batch; ++i) {
    const std::int64_t length = call.extend_seq_lens[i];
    // Production computes no row past this one and leaves them as they were.
    require(length <= call.max_len_extend || defect == Defect::rows_past_max_len_skipped,
            at("extend_seq_lens", i, length) +
                " is more than max_len_extend = " + std::to_string(call.max_len_extend));
    const std::int64_t total = call.seq_lens[i];
    require(total >= length, at("seq_lens", i, total) + " with " + std::to_string(length) +
                                 " new tokens: the prefix would be negative");
    const std::int64_t encoder = encoder_of(call.encoder_lens, i);
    const std::int64_t from_pool =
        call.is_cross_attn ? (call.encoder_lens ? encoder : total) : total - length;
    check_slots(call.req_to_token, call.req_pool_indices[i], i, call.is_cross_attn ? 0 : encoder,
                from_pool, call.k_buffer.size(0));
  }
}

void check_decode(const DecodeCall& call, Defect defect) {
  const std::size_t batch = call.seq_lens.values.size();
  length_is("req_pool_indices", call.req_pool_indices, batch);
  if (call.encoder_lens) length_is("encoder_lens", *call.encoder_lens, batch);
  check_encoder(call.is_cross_attn, call.encoder_lens, defect);
  check_shapes(call.query, call.k_buffer, call.v_buffer, call.output, defect);
  check_sinks(call.sinks, call.query);
  const auto rows = static_cast<std::int64_t>(batch);
  require(call.query.size(0) == rows ||
              (defect == Defect::rows_past_the_batch_skipped && call.query.size(0) > rows),
          "query has " + std::to_string(call.query.size(0)) + " rows, seq_lens has " +
              std::to_string(batch));
  require(call.attn_logits.size(2) >= 1 && call.attn_logits.size(2) <= 1024,
          "attn_logits asks for " + std::to_string(call.attn_logits.size(2)) + " kv splits");
  const std::int64_t slots = call.k_buffer.size(0);
  if (call.key || call.value) {
    require(call.key && call.value, "key and value come together or not at all");
    length_is("loc", call.loc, batch);
    for (std::size_t i = 0; i < batch; ++i) {
      require(
          call.loc[i] >= 0 && call.loc[i] < slots,
          at("loc", i, call.loc[i]) + " is outside the pool's " + std::to_string(slots) + " slots");
    }
    require(call.key->size(0) >= static_cast<std::int64_t>(batch) &&
                call.value->size(0) >= static_cast<std::int64_t>(batch) &&
                call.key->shape[1] == call.k_buffer.shape[1] &&
                call.key->shape[2] == call.k_buffer.shape[2] &&
                call.value->shape[1] == call.v_buffer.shape[1] &&
                call.value->shape[2] == call.v_buffer.shape[2],
            "key or value rows do not have the shape of the pool's");
  }
  for (std::size_t i = 0; i < batch; ++i) {
    const std::int64_t length = call.seq_lens[i];
    require(length >= 1 || call.is_cross_attn,
            at("seq_lens", i, length) + ": a row needs at least its own key");
    const std::int64_t encoder = encoder_of(call.encoder_lens, i);
    const std::int64_t count = call.is_cross_attn && call.encoder_lens ? encoder : length;
    check_slots(call.req_to_token, call.req_pool_indices[i], i, call.is_cross_attn ? 0 : encoder,
                count, slots);
  }
}

}  // namespace attest::amx
