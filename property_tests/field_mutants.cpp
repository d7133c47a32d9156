#include "property_tests/field_mutants.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <type_traits>

#include "contracts/call_fields.hpp"
#include "contracts/work_lists.hpp"

namespace attest {
namespace {

using Changes = std::vector<std::string>;

// What can be done to a value of each type, by its name.
const Changes& changes_of(const IntArray*) {
  static const Changes list = {"an entry + 1",      "an entry - 1",    "an entry is 0",
                               "two entries swap",  "every entry + 1", "int32 for int64 or back",
                               "last entry missing"};
  return list;
}
const Changes& changes_of(const TensorMeta*) {
  static const Changes list = {"another dtype", "one row fewer", "half a head",
                               "first stride doubled"};
  return list;
}
const Changes& changes_of(const std::int64_t*) {
  static const Changes list = {"+ 1", "- 1", "0"};
  return list;
}
const Changes& changes_of(const double*) {
  static const Changes list = {"doubled", "0", "1"};
  return list;
}
const Changes& changes_of(const bool*) {
  static const Changes list = {"flipped"};
  return list;
}
const Changes& changes_of(const std::string*) {
  static const Changes list = {"another word"};
  return list;
}
const Changes& changes_of(const std::array<std::int64_t, 2>*) {
  static const Changes list = {"left + 1", "left - 1", "off"};
  return list;
}
const Changes& changes_of(const Launch*) {
  static const Changes list = {"one split", "no shared loads"};
  return list;
}
const Changes& changes_of(const WorkPlan*) {
  static const Changes list = {"one row", "other heads", "types not passed", "another mode"};
  return list;
}
template <class T>
Changes changes_of(const std::optional<T>*) {
  Changes list = changes_of(static_cast<const T*>(nullptr));
  list.insert(list.begin(), "absent");
  return list;
}

bool change(IntArray& array, std::string_view what, std::uint64_t seed) {
  std::vector<std::int64_t>& values = array.values;
  if (what == "int32 for int64 or back") {
    const bool narrow = array.meta.dtype == Dtype::int32;
    if (!narrow && array.meta.dtype != Dtype::int64) return false;
    array.meta.dtype = narrow ? Dtype::int64 : Dtype::int32;
    return true;
  }
  if (values.empty()) return false;
  std::int64_t& entry = values[seed % values.size()];
  if (what == "an entry + 1") return ++entry, true;
  if (what == "an entry - 1") return --entry, true;
  if (what == "every entry + 1") {
    for (std::int64_t& value : values) ++value;
    return true;
  }
  if (what == "an entry is 0") {
    if (entry == 0) return false;
    entry = 0;
    return true;
  }
  if (what == "two entries swap") {
    std::int64_t& other = values[(seed / 7919) % values.size()];
    if (other == entry) return false;
    std::swap(entry, other);
    return true;
  }
  if (array.meta.shape.size() != 1) return false;
  values.pop_back();
  array.meta.shape[0] = static_cast<std::int64_t>(values.size());
  return true;
}

bool change(TensorMeta& tensor, std::string_view what, std::uint64_t) {
  if (tensor.shape.empty()) return false;
  if (what == "another dtype") {
    tensor.dtype = tensor.dtype == Dtype::bf16 ? Dtype::f16 : Dtype::bf16;
    return true;
  }
  if (what == "one row fewer") {
    if (tensor.shape.front() < 2) return false;
    --tensor.shape.front();
    return true;
  }
  if (what == "half a head") {
    if (tensor.shape.size() < 2 || tensor.shape.back() % 2 != 0) return false;
    tensor.shape.back() /= 2;
    return true;
  }
  if (tensor.strides.size() < 2 || tensor.shape.front() < 2) return false;
  tensor.strides.front() *= 2;
  return true;
}

bool change(std::int64_t& value, std::string_view what, std::uint64_t) {
  const std::int64_t before = value;
  value = what == "+ 1" ? value + 1 : what == "- 1" ? value - 1 : 0;
  return value != before;
}

bool change(double& value, std::string_view what, std::uint64_t) {
  const double before = value;
  value = what == "doubled" ? 2 * value : what == "1" ? 1 : 0;
  return value != before;
}

bool change(bool& value, std::string_view, std::uint64_t) { return value = !value, true; }

bool change(std::string& value, std::string_view, std::uint64_t) {
  value = value == "NHD" ? "HND" : value == "auto" ? "fp8" : "auto";
  return true;
}

bool change(std::array<std::int64_t, 2>& pair, std::string_view what, std::uint64_t) {
  const auto before = pair;
  pair[0] = what == "off" ? -1 : what == "left + 1" ? pair[0] + 1 : pair[0] - 1;
  return pair != before && !(pair[0] < 0 && before[0] < 0);
}

bool change(Launch& launch, std::string_view what, std::uint64_t) {
  const Launch before = launch;
  if (what == "one split") launch = {"2d", 1, launch.queries_per_kv};
  if (what == "no shared loads") launch.queries_per_kv = 1;
  return !(launch == before);
}

bool change(WorkPlan& plan, std::string_view what, std::uint64_t) {
  const WorkPlan before = plan;
  if (what == "one row") plan.max_seqlen_qo = 1;
  if (what == "other heads") plan.num_heads *= 2;
  if (what == "types not passed") plan.dtype_q = plan.dtype_kv = std::nullopt;
  if (what == "another mode") plan.fast_mode = !plan.fast_mode;
  return !(plan == before);
}

template <class T>
bool change(std::optional<T>& value, std::string_view what, std::uint64_t seed) {
  if (!value) return false;
  if (what == "absent") return value.reset(), true;
  return change(*value, what, seed);
}

/// Whether the field is one of the work lists, or what they were made for.
bool of_work_lists(const FieldMutant& mutant) {
  return is_work_list(mutant.field) || mutant.field == "sized_for" || mutant.field == "planned_for";
}

/// The call to mutate: launched by work lists where those are mutated.
Call prepared(const Call& call, const FieldMutant& mutant) {
  const auto* const mla = std::get_if<MlaDecodeCall>(&call);
  const bool ready = mla != nullptr && !mla->work_info_set && mla->page_size == 1;
  return ready && of_work_lists(mutant) ? with_work_lists(*mla, 5) : call;
}

template <class CallType>
std::vector<FieldMutant> mutants_of() {
  std::vector<FieldMutant> list;
  const auto add = [&]<class Member>(const CallField<CallType, Member>& field) {
    for (const std::string& what : changes_of(static_cast<const Member*>(nullptr))) {
      list.push_back({std::string(field.key), what});
    }
  };
  std::apply([&](const auto&... fields) { (add(fields), ...); }, call_fields<CallType>);
  return list;
}

template <std::size_t... index>
std::vector<FieldMutant> mutants_of(Signature signature, std::index_sequence<index...>) {
  constexpr std::array lists = {&mutants_of<std::variant_alternative_t<index, Call>>...};
  return lists[static_cast<std::size_t>(signature)]();
}

}  // namespace

std::vector<FieldMutant> field_mutants(Signature signature) {
  return mutants_of(signature, std::make_index_sequence<std::variant_size_v<Call>>());
}

std::optional<Call> mutated(const Call& call, const FieldMutant& mutant, std::uint64_t seed) {
  Call copy = prepared(call, mutant);
  const bool changed = std::visit(
      [&](auto& c) {
        bool any = false;
        const auto apply = [&](const auto& field) {
          if (field.key == mutant.field) any |= change(c.*(field.member), mutant.change, seed);
        };
        std::apply([&](const auto&... fields) { (apply(fields), ...); },
                   call_fields<std::decay_t<decltype(c)>>);
        return any;
      },
      copy);
  if (!changed) return std::nullopt;
  return copy;
}

}  // namespace attest
