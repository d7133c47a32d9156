#include <string>
#include <tuple>

#include "contracts/call_fields.hpp"
#include "property_tests/metadata_faults.hpp"

namespace attest {
namespace {

using enum Signature;

template <class CallType>
bool has_argument(std::string_view name) {
  return std::apply([&](const auto&... fields) { return ((fields.key == name) || ...); },
                    call_fields<CallType>);
}

bool has_argument(Signature signature, std::string_view name) {
  switch (signature) {
    case unified:
      return has_argument<UnifiedCall>(name);
    case extend:
      return has_argument<ExtendCall>(name);
    case decode:
      return has_argument<DecodeCall>(name);
    case mla_decode:
      return has_argument<MlaDecodeCall>(name);
    case batch_prefill:
      return has_argument<BatchPrefillCall>(name);
    case paged_ragged:
      return has_argument<PagedRaggedCall>(name);
    case legacy_extend:
      return has_argument<LegacyExtendCall>(name);
    case vllm_cpu:
      return has_argument<VllmCpuCall>(name);
  }
  return false;
}

bool has_any_argument(Signature signature, std::string_view names) {
  for (;;) {
    const std::size_t comma = names.find(", ");
    if (has_argument(signature, names.substr(0, comma))) return true;
    if (comma == std::string_view::npos) return false;
    names.remove_prefix(comma + 2);
  }
}

std::string signatures_of(const MetadataFault& fault) {
  std::string names;
  for (const Signature signature : all_signatures) {
    if (fault.is_of(signature)) names += (names.empty() ? "" : ", ") + std::string(name(signature));
  }
  return names;
}

}  // namespace

std::string why_nothing_changes(const MetadataFault& fault, Signature signature) {
  const std::string id(fault.id), argument(fault.argument), called(name(signature));
  if (fault.is_of(signature)) {
    return "fault " + id + " changes nothing in this call: it takes " + std::string(fault.needs) +
           " (it changes " + argument + ")";
  }
  const std::string lacks = has_any_argument(signature, fault.argument)
                                ? "is not a mistake of " + called
                                : "changes " + argument + ", which " + called + " does not have";
  return "fault " + id + " " + lacks + "; it is one of " + signatures_of(fault);
}

}  // namespace attest
