#include "backends/worker/arguments.hpp"

#include <algorithm>
#include <string_view>

#include "contracts/call_fields.hpp"
#include "contracts/signatures/returned_output.hpp"

namespace attest {
namespace {

/// By parameter name: what is not listed here is read.
ArgumentRole role_of(std::string_view key) {
  constexpr std::array pools = {"k",         "v",         "k_buffer",   "v_buffer",
                                "kv_buffer", "key_cache", "value_cache"};
  constexpr std::array outputs = {"out", "o_extend", "output", "o"};
  constexpr std::array scratch = {"attn_logits", "workspace_buffer"};
  const auto among = [key](const auto& names) {
    return std::find(names.begin(), names.end(), key) != names.end();
  };
  if (among(pools)) return ArgumentRole::pool;
  if (among(outputs)) return ArgumentRole::output;
  return among(scratch) ? ArgumentRole::scratch : ArgumentRole::input;
}

/// Adds one member of a call, by its type.
struct Adder {
  std::string_view key;
  std::vector<Argument>& list;

  void operator()(const TensorMeta& meta) const {
    list.push_back({std::string(key), TensorArgument{.meta = meta, .role = role_of(key)}});
  }
  void operator()(const IntArray& array) const { (*this)(array.meta); }
  void operator()(const Launch&) const {}
  void operator()(const WorkPlan&) const {}
  template <class T>
  void operator()(const std::optional<T>& value) const {
    if (value) (*this)(*value);
  }
  template <class T>
  void operator()(const T& value) const {
    list.push_back({std::string(key), value});
  }
};

}  // namespace

std::string_view name(ArgumentRole role) {
  switch (role) {
    case ArgumentRole::input:
      return "input";
    case ArgumentRole::pool:
      return "pool";
    case ArgumentRole::output:
      return "output";
    case ArgumentRole::scratch:
      return "scratch";
  }
  return "";
}

std::vector<Argument> arguments_of(const Call& call) {
  std::vector<Argument> list;
  std::visit(
      [&](const auto& c) {
        using CallType = std::decay_t<decltype(c)>;
        std::apply([&](const auto&... fields) { (Adder{fields.key, list}(c.*fields.member), ...); },
                   call_fields<CallType>);
      },
      call);
  if (const auto out = returned_output(call)) Adder{"out", list}(*out);
  return list;
}

}  // namespace attest
