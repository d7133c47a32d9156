#include "contracts/rules/cpu_offsets.hpp"

#include <algorithm>
#include <string>

#include "contracts/rules/finding_text.hpp"
#include "contracts/rules/table_rows.hpp"
#include "contracts/signatures/cpu_kernels.hpp"

namespace attest {
namespace {

constexpr std::int64_t int32_limit = std::int64_t{1} << 31;

/// The largest slot that a live request reads, and the cell that names it.
struct Reach {
  std::int64_t slot = -1;
  std::int64_t token = 0;
  TableCells row;
};

template <class CallType>
Reach reach(const CallType& c, const Truth& truth) {
  Reach far;
  for (std::size_t i = 0; i < truth.problem.requests.size(); ++i) {
    const auto row = visible_cells(c, truth, i);
    if (!row) continue;
    for (std::int64_t t = row->first; t < row->last; ++t) {
      const std::int64_t slot = row->cells[t - row->first];
      if (slot > far.slot && slot < c.k_buffer.size(0)) far = {slot, t, *row};
    }
  }
  return far;
}

template <class CallType>
void product_fits(const CallType& c, const Truth& truth, bool wraps, Report& report) {
  const std::int64_t stride = std::max(c.k_buffer.stride(0), c.v_buffer.stride(0));
  std::int64_t whole_pool = 0;
  const bool beyond =
      __builtin_mul_overflow(c.k_buffer.size(0), stride, &whole_pool) || whole_pool >= int32_limit;
  if (c.req_to_token.meta.dtype != Dtype::int32 || !beyond) return;
  const bool rows = recorded(c.req_pool_indices, "req_pool_indices", report);
  if (!recorded(c.req_to_token, "req_to_token", report) || !rows) return;
  const Reach far = reach(c, truth);
  std::int64_t elements = 0;
  if (far.slot < 0 ||
      (!__builtin_mul_overflow(far.slot, stride, &elements) && elements < int32_limit)) {
    return;
  }
  report.add(wraps ? Severity::wrong : Severity::policy, cell_name(far.row, far.token),
             std::to_string(far.slot) + ", at row stride " + std::to_string(stride) + " element " +
                 std::to_string(elements),
             "elements below 2^31 = 2147483648, or an int64 req_to_token");
}

void extend_product_fits(const ExtendCall& c, const Truth& truth, Report& report) {
  product_fits(c, truth, truth.capabilities.index_dtype_reaches_offsets, report);
}

void decode_product_fits(const DecodeCall& c, const Truth& truth, Report& report) {
  // The MHA and GQA paths multiply in int64.
  product_fits(c, truth, truth.capabilities.index_dtype_reaches_offsets && takes_mla_path(c),
               report);
}

void offset_fits(std::string_view name, std::int64_t rows, std::int64_t stride, Report& report) {
  std::int64_t elements = 0;
  if (!__builtin_mul_overflow(rows, stride, &elements) && elements <= int32_limit) return;
  report.add(std::string(name), std::to_string(rows) + " rows of stride " + std::to_string(stride),
             "at most 2^31 elements");
}

void offsets_fit(const ExtendCall& c, const Truth&, Report& report) {
  offset_fits("req_to_token", c.req_to_token.size(0), c.req_to_token.size(1), report);
  offset_fits("q_extend", c.q_extend.size(0), c.q_extend.stride(0), report);
  offset_fits("o_extend", c.o_extend.size(0), c.o_extend.stride(0), report);
  if (c.k_extend) offset_fits("k_extend", c.k_extend->size(0), c.k_extend->stride(0), report);
  if (c.v_extend) offset_fits("v_extend", c.v_extend->size(0), c.v_extend->stride(0), report);
}

constexpr Rule rules[] = {
    {.id = "req_to_token.dtype_holds_the_element_offsets",
     .says = "slot * row stride stays below 2^31 elements when req_to_token is int32",
     .why = "extend and decode's MLA path multiply in the table's dtype: past 4 GiB of bf16 the "
            "offset wraps",
     .source = "sgl-project/sglang#36541 is the same class on the AITER side; "
               "sgl-kernel/csrc/cpu/extend.cpp, pack_vnni",
     .severity = Severity::wrong,
     .extend = extend_product_fits,
     .decode = decode_product_fits},
    {.id = "offset.fits_int32",
     .says = "rows * row stride of req_to_token and of q, k, v and o stay within 2^31",
     .why = "extend multiplies row numbers and strides as int, whatever the index dtype",
     .source = "sgl-project/sglang#20400 fixed the same product in flash_attn only",
     .severity = Severity::fault,
     .extend = offsets_fit},
};

}  // namespace

std::span<const Rule> cpu_offsets_rules() { return rules; }

}  // namespace attest
