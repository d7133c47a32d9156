#include "backends/hip/call_checks.hpp"

#include <algorithm>

#include "backends/hip/kernels/paged_launch.hpp"
#include "contracts/work_lists.hpp"

namespace attest::hip {
namespace {

/// Most keys of a request, so that key numbers and ends of tiles fit 32 bits.
constexpr std::int64_t most_keys = (std::int64_t{1} << 31) - 4096;
/// Most rows, heads and entries; keeps products of two in 63 bits.
constexpr std::int64_t most_rows = std::int64_t{1} << 24;

std::string number(std::int64_t value) { return std::to_string(value); }

std::string at(const char* array, std::int64_t i, std::int64_t value) {
  return std::string(array) + "[" + number(i) + "] = " + number(value);
}

void require(bool ok, const std::string& message) {
  if (!ok) throw Refusal(message);
}

std::int64_t entry(const IntArray& array, std::int64_t i) {
  return array.values[static_cast<std::size_t>(i)];
}

void check_offsets(const char* name, const IntArray& offsets, std::int64_t batch) {
  const auto count = static_cast<std::int64_t>(offsets.values.size());
  require(count > batch, std::string(name) + " has " + number(count) + " entries for " +
                             number(batch) + " requests");
  for (std::int64_t i = 0; i <= batch; ++i) {
    const std::int64_t value = entry(offsets, i);
    require(value >= (i == 0 ? 0 : entry(offsets, i - 1)) && value <= most_rows * 64,
            at(name, i, value) +
                (i == 0 ? ", not an offset" : ", after " + number(entry(offsets, i - 1))));
  }
}

void check_heads(const TensorMeta& q, const TensorMeta& out, std::int64_t kv_heads) {
  require(kv_heads >= 1 && q.size(1) % kv_heads == 0,
          number(q.size(1)) + " query heads are no multiple of " + number(kv_heads) + " kv heads");
  require(out.size(1) == q.size(1),
          "out has " + number(out.size(1)) + " heads, q has " + number(q.size(1)));
}

/// Rows and first key position of one request, as the kernel derives them.
struct Span {
  std::int64_t tokens = 0, length = 0;
  std::int64_t first_key(std::int64_t window_left) const {
    const std::int64_t position = std::max<std::int64_t>(length - tokens, 0);
    return window_left < 0 ? 0 : std::max<std::int64_t>(position - window_left, 0);
  }
};

/// Every page that holds a key some row of the request sees. A column past the end of a table row
/// is the next row's entry, as the kernel's arithmetic has it.
void check_pages(const char* name, const IntArray& table, std::int64_t start, const Span& span,
                 std::int64_t window_left, std::int64_t page_size, std::int64_t pages) {
  if (span.tokens <= 0 || span.length <= 0) return;
  const auto cells = static_cast<std::int64_t>(table.values.size());
  const std::int64_t last = (span.length - 1) / page_size;
  for (std::int64_t column = span.first_key(window_left) / page_size; column <= last; ++column) {
    const std::int64_t cell = start + column;
    require(cell < cells, std::string(name) + " ends at entry " + number(cells) + ", entry " +
                              number(cell) + " is needed");
    const std::int64_t page = entry(table, cell);
    require(page >= 0 && page < pages,
            at(name, cell, page) + " is outside the pool's " + number(pages) + " pages");
  }
}

void check_length(const char* name, std::int64_t i, std::int64_t length) {
  require(length >= 0 && length <= most_keys, at(name, i, length) + " is no length");
}

Span span_of(const UnifiedCall& call, std::int64_t i) {
  if (call.max_seqlen_q == 1) return {1, entry(call.seqused_k, i)};
  return {entry(call.cu_seqlens_q, i + 1) - entry(call.cu_seqlens_q, i), entry(call.seqused_k, i)};
}

Answer fits(const TensorMeta& q, const TensorMeta& out, Dtype kv) {
  const bool computes_in_kv = kv == q.dtype || is_fp8(kv);
  if (!computes_in_kv) {
    return Answer::no(std::string(name(q.dtype)) + " queries over " + std::string(name(kv)) +
                      " keys: the kernel takes q's own type or fp8");
  }
  if (is_fp8(out.dtype)) return Answer::no("fp8 output");
  if (q.size(0) > most_rows || q.size(1) > 65535 || q.size(1) < 1) {
    return Answer::no("q of " + number(q.size(0)) + " rows and " + number(q.size(1)) + " heads");
  }
  return {};
}

std::vector<std::string> past_the_rows(const char* array, std::int64_t i, std::int64_t first,
                                       std::int64_t count, std::int64_t rows) {
  if (first + count <= rows) return {};
  return {std::string(array) + " gives request " + number(i) + " rows [" + number(first) + ", " +
          number(first + count) + ") of " + number(rows) + ": they are left out"};
}

}  // namespace

Answer compiled_for(const UnifiedCall& call) {
  const std::int64_t dim = call.q.size(2);
  const std::int64_t v_dim = call.out.size(2);
  if (dim < 1 || v_dim < 1 || dim > largest_head_dim || v_dim > largest_head_dim) {
    return Answer::no("head sizes " + number(dim) + " and " + number(v_dim) +
                      ": the kernels are built up to " + number(largest_head_dim));
  }
  if (call.k.dtype != call.v.dtype) return Answer::no("K and V of different types");
  return fits(call.q, call.out, call.k.dtype);
}

Answer compiled_for(const MlaDecodeCall& call) {
  const std::int64_t dim = call.q.size(2);
  if (dim < 1 || dim > largest_latent_dim || call.o.size(2) < 1 || call.o.size(2) > dim) {
    return Answer::no("latent rows of " + number(dim) + " elements, " + number(call.o.size(2)) +
                      " of them V: the kernel is built for up to " + number(largest_latent_dim));
  }
  if (call.q.dtype == Dtype::f32) return Answer::no("f32 queries over a latent pool");
  if (call.persistent && gives_work_lists(call)) {
    return Answer::no("the kernel takes no work lists: what they say would not be run");
  }
  return fits(call.q, call.o, call.kv_buffer.dtype);
}

void check_call(const UnifiedCall& call) {
  require(call.causal, "causal = false: only causal attention is supported");
  const std::int64_t batch = call.seqused_k.numel();
  check_heads(call.q, call.out, call.k.size(2));
  require(call.k.size(2) == call.v.size(2),
          "k has " + number(call.k.size(2)) + " heads, v has " + number(call.v.size(2)));
  require(call.k.size(1) >= 1 && call.k.size(1) == call.v.size(1),
          "k has pages of " + number(call.k.size(1)) + ", v of " + number(call.v.size(1)));
  require(call.k.size(3) >= call.q.size(2), "k rows hold " + number(call.k.size(3)) +
                                                " elements, the kernel reads " +
                                                number(call.q.size(2)));
  require(call.v.size(3) >= call.out.size(2), "v rows hold " + number(call.v.size(3)) +
                                                  " elements, the kernel reads " +
                                                  number(call.out.size(2)));
  require(!call.sinks || call.sinks->size(0) >= call.q.size(1),
          "sinks has fewer entries than q has heads");
  require(call.block_table.size(0) >= batch || batch == 0,
          "block_table has " + number(call.block_table.size(0)) + " rows for " + number(batch) +
              " requests");
  if (call.max_seqlen_q != 1) check_offsets("cu_seqlens_q", call.cu_seqlens_q, batch);
  for (std::int64_t i = 0; i < batch; ++i) {
    check_length("seqused_k", i, entry(call.seqused_k, i));
    check_pages("block_table", call.block_table, i * call.block_table.size(1), span_of(call, i),
                call.window_size[0], call.k.size(1), std::min(call.k.size(0), call.v.size(0)));
  }
}

void check_call(const MlaDecodeCall& call) {
  require(call.logit_cap <= 0, "logit_cap must be <= 0");
  require(call.max_seqlen_q >= 1 && call.max_seqlen_q <= most_rows,
          "max_seqlen_q = " + number(call.max_seqlen_q));
  const std::int64_t page_size = call.page_size;
  require(page_size >= 1 && page_size == call.kv_buffer.size(1),
          "page_size = " + number(page_size) + ", kv_buffer has pages of " +
              number(call.kv_buffer.size(1)));
  check_heads(call.q, call.o, call.kv_buffer.size(2));
  require(call.kv_buffer.size(3) >= call.q.size(2),
          "kv_buffer rows hold " + number(call.kv_buffer.size(3)) + " elements, the kernel reads " +
              number(call.q.size(2)));
  const std::int64_t batch = call.kv_indptr.numel() - 1;
  require(batch >= 0, "kv_indptr is empty");
  check_offsets("kv_indptr", call.kv_indptr, batch);
  require(page_size == 1 || call.kv_last_page_lens.numel() >= batch,
          "kv_last_page_lens has " + number(call.kv_last_page_lens.numel()) + " entries for " +
              number(batch) + " requests");
  for (std::int64_t i = 0; i < batch; ++i) {
    const std::int64_t pages = entry(call.kv_indptr, i + 1) - entry(call.kv_indptr, i);
    std::int64_t length = pages;
    if (page_size > 1 && pages > 0) {
      const std::int64_t last = entry(call.kv_last_page_lens, i);
      require(last >= 1 && last <= page_size, at("kv_last_page_lens", i, last));
      length = (pages - 1) * page_size + last;
    }
    check_length("kv_indptr", i, length);
    check_pages("kv_indices", call.kv_indices, entry(call.kv_indptr, i),
                {call.max_seqlen_q, length}, -1, page_size, call.kv_buffer.size(0));
  }
}

std::vector<std::string> rows_left_out(const UnifiedCall& call) {
  std::vector<std::string> all;
  const std::int64_t rows = std::min(call.q.size(0), call.out.size(0));
  for (std::int64_t i = 0; i < call.seqused_k.numel(); ++i) {
    const std::int64_t first = call.max_seqlen_q == 1 ? i : entry(call.cu_seqlens_q, i);
    for (auto& text : past_the_rows("cu_seqlens_q", i, first, span_of(call, i).tokens, rows)) {
      all.push_back(std::move(text));
    }
  }
  return all;
}

std::vector<std::string> rows_left_out(const MlaDecodeCall& call) {
  std::vector<std::string> all;
  const std::int64_t rows = std::min(call.q.size(0), call.o.size(0));
  for (std::int64_t i = 0; i + 1 < call.kv_indptr.numel(); ++i) {
    for (auto& text :
         past_the_rows("max_seqlen_q", i, i * call.max_seqlen_q, call.max_seqlen_q, rows)) {
      all.push_back(std::move(text));
    }
  }
  return all;
}

}  // namespace attest::hip
