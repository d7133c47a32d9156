#include "backends/faulty/wrap_faults.hpp"

#include <string>
#include <utility>

#include "backends/amx/amx_backend.hpp"
#include "backends/hip/hip_backend.hpp"
#include "backends/scalar/scalar_backend.hpp"

namespace attest {
namespace {

using enum WrapStep;
using enum WrapKind;

constexpr Boundary bytes_31{31, OffsetUnit::bytes};
constexpr Boundary bytes_32{32, OffsetUnit::bytes};
constexpr Boundary elements_31{31, OffsetUnit::elements};
constexpr Boundary elements_32{32, OffsetUnit::elements};

// One row each: id, model, the boundary it wraps at, what the kernel does.
constexpr WrapFault rows[] = {
    {"page_product_int32",
     {page_product, int32},
     elements_31,
     "page * page_stride is an int32 product"},
    {"page_product_uint32",
     {page_product, uint32},
     elements_32,
     "page * page_stride is a uint32 product"},
    {"slot_sum_int32",
     {slot_sum, int32},
     elements_31,
     "the offset of a slot is an int32 sum of elements"},
    {"slot_sum_uint32",
     {slot_sum, uint32},
     elements_32,
     "the offset of a slot is a uint32 sum of elements"},
    {"head_sum_int32",
     {head_sum, int32},
     elements_31,
     "the offset of a head is an int32 sum of elements"},
    {"head_sum_uint32",
     {head_sum, uint32},
     elements_32,
     "the offset of a head is a uint32 sum of elements"},
    {"bytes_int32", {bytes, int32}, bytes_31, "the byte offset is an int32"},
    {"bytes_uint32",
     {bytes, uint32},
     bytes_32,
     "the byte offset is taken modulo 2^32: a launch specialised for a small pool"},
    {"descriptor",
     {bytes, descriptor},
     bytes_31,
     "a buffer descriptor of 2^31 - 2 bytes: past it zeros are read, past 2^32 an earlier page"},
    {"k_bytes_int32", {bytes, int32, true, false}, bytes_31, "the byte offset of K is an int32"},
    {"v_bytes_int32", {bytes, int32, false, true}, bytes_31, "the byte offset of V is an int32"},
    {"k_page_product_int32",
     {page_product, int32, true, false},
     elements_31,
     "page * page_stride of K is an int32 product"},
    {"v_page_product_int32",
     {page_product, int32, false, true},
     elements_31,
     "page * page_stride of V is an int32 product"},
    {"bytes_in_index_dtype",
     {bytes, int32, true, true, true},
     bytes_31,
     "the byte offset is computed in the dtype of seqused_k (of the table on a CPU)"},
    {"elements_in_index_dtype",
     {slot_sum, int32, true, true, true},
     elements_31,
     "the element offset is computed in the dtype of seqused_k (of the table on a CPU)"},
};

struct WrapBackend {
  std::unique_ptr<const Backend> backend;
  const WrapFault* fault;
};

/// MLA's K and V are one pool, which one of the halves alone cannot leave.
bool has_halves(Signature signature) { return signature != Signature::mla_decode; }

void add_of(const WrapFault& fault, std::vector<WrapBackend>& list) {
  const std::string implementation = "faulty-wrap-" + std::string(fault.id);
  const std::string says(fault.says);
  const bool both = fault.model.in_k && fault.model.in_v;
  for (const Signature signature :
       {Signature::unified, Signature::extend, Signature::decode, Signature::mla_decode}) {
    if (fault.model.step == head_sum || (!both && !has_halves(signature))) continue;
    list.push_back(
        {std::make_unique<ScalarBackend>(implementation, signature, "scalar, but " + says,
                                         Mistake{Fault::none, fault.model}),
         &fault});
  }
  for (const amx::Engine engine : {amx::Engine::native, amx::Engine::patch}) {
    for (const Signature signature : {Signature::extend, Signature::decode}) {
      list.push_back({std::make_unique<amx::AmxBackend>(signature, engine, implementation,
                                                        "AMX tile kernel, but " + says,
                                                        amx::Defect::none, fault.model),
                      &fault});
    }
  }
  static const std::shared_ptr<const hip::Engine> engines[] = {
      hip::host_engine(32), hip::device_engine("cuda"), hip::device_engine("rocm")};
  for (const auto& engine : engines) {
    hip::KernelVariant variant;
    variant.wrap = fault.model;
    variant.says = "our HIP kernel, but " + says;
    list.push_back({std::make_unique<hip::HipBackend>(implementation, Signature::unified, engine,
                                                      std::move(variant)),
                    &fault});
  }
}

const std::vector<WrapBackend>& all_of_them() {
  static const std::vector<WrapBackend> list = [] {
    std::vector<WrapBackend> made;
    for (const WrapFault& fault : rows) add_of(fault, made);
    return made;
  }();
  return list;
}

}  // namespace

std::span<const WrapFault> all_wrap_faults() { return rows; }

const WrapFault* wrap_fault_of(const Backend& backend) {
  for (const WrapBackend& one : all_of_them()) {
    if (one.backend.get() == &backend) return one.fault;
  }
  return nullptr;
}

std::span<const Backend* const> wrap_fault_backends() {
  static const std::vector<const Backend*> list = [] {
    std::vector<const Backend*> pointers;
    for (const WrapBackend& one : all_of_them()) pointers.push_back(one.backend.get());
    return pointers;
  }();
  return list;
}

}  // namespace attest
