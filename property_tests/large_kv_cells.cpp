#include <algorithm>

#include "property_tests/large_kv.hpp"

namespace attest {
namespace {

constexpr std::array sides = {Side::below, Side::straddling, Side::above};
constexpr std::array widths = {Dtype::int32, Dtype::int64};

bool takes(const Capabilities& capabilities, Dtype kv) {
  const auto has = [](const std::vector<Dtype>& list, Dtype dtype) {
    return std::find(list.begin(), list.end(), dtype) != list.end();
  };
  // q is bf16 beside bf16 and fp8 keys.
  const Dtype q = kv == Dtype::f32 ? Dtype::f32 : Dtype::bf16;
  return has(capabilities.kv_dtypes, kv) && has(capabilities.q_dtypes, q);
}

/// Ways that a signature's pool can take there, with the operand that goes.
struct Way {
  LargeKvBy by;
  const char* operand;
};
std::vector<Way> ways_of(Signature signature) {
  using enum Signature;
  if (signature == mla_decode) return {{LargeKvBy::page_ids, "kv"}};
  // The others' pools are not laid out yet.
  if (signature != unified && signature != extend && signature != decode) return {};
  return {{LargeKvBy::page_ids, "k"},
          {LargeKvBy::strides, "k"},
          {LargeKvBy::strides, "v"},
          {LargeKvBy::view, "k"},
          {LargeKvBy::decoys, "k"}};
}

/// Both forms where page ids lead there; the backend's own choice elsewhere.
std::vector<std::string> forms_of(Signature signature, LargeKvBy by) {
  if (signature == Signature::unified && by == LargeKvBy::page_ids) return {"2d", "3d"};
  return {""};
}

void add_widths(LargeKvCell cell, std::vector<LargeKvCell>& cells) {
  for (const Dtype table : widths) {
    for (const Dtype length : widths) {
      // Lengths are int64 on a CPU and counted in int32 pages by MLA.
      const bool has_both = cell.signature == Signature::unified;
      if (!has_both && length != Dtype::int64) continue;
      cell.table_dtype = table;
      cell.length_dtype = length;
      cells.push_back(cell);
    }
  }
}

}  // namespace

std::string_view name(LargeKvBy by) {
  switch (by) {
    case LargeKvBy::page_ids:
      return "page_ids";
    case LargeKvBy::strides:
      return "strides";
    case LargeKvBy::view:
      return "view";
    case LargeKvBy::decoys:
      return "decoys";
  }
  return "";
}

std::string LargeKvCell::name() const {
  std::string text = aim.operand + " " + std::string(attest::name(aim.side)) + " " +
                     attest::name(aim.boundary) + ", " + std::string(attest::name(by)) + ", " +
                     std::string(attest::name(kv_dtype));
  if (signature == Signature::unified) {
    text += ", lengths " + std::string(attest::name(length_dtype));
  }
  text += ", table " + std::string(attest::name(table_dtype));
  return form.empty() ? text : text + ", " + form;
}

std::vector<LargeKvCell> large_kv_cells(const Capabilities& capabilities) {
  const Signature signature = capabilities.signature;
  std::vector<LargeKvCell> cells;
  for (const Dtype kv : {Dtype::bf16, Dtype::fp8_e4m3fn, Dtype::f32}) {
    if (!takes(capabilities, kv) || (kv != Dtype::bf16 && signature != Signature::unified))
      continue;
    for (const Way& way : ways_of(signature)) {
      for (const Boundary& boundary : all_boundaries()) {
        if (size_bytes(kv) == 1 && boundary.unit == OffsetUnit::elements) continue;
        for (const Side side : sides) {
          if (way.by == LargeKvBy::decoys && side != Side::straddling) continue;
          for (const std::string& form : forms_of(signature, way.by)) {
            LargeKvCell cell{.aim = {way.operand, boundary, side},
                             .by = way.by,
                             .signature = signature,
                             .kv_dtype = kv,
                             .form = form};
            add_widths(cell, cells);
          }
        }
      }
    }
  }
  return cells;
}

}  // namespace attest
