#include "backends/plugin/plugin_call.hpp"

#include <nlohmann/json.hpp>

#include "backends/backend.hpp"

namespace attest {
namespace {

using Json = nlohmann::ordered_json;

static_assert(static_cast<int>(Dtype::bf16) == ATTEST_BF16 &&
                  static_cast<int>(Dtype::boolean) == ATTEST_BOOL,
              "attest_dtype lists the dtypes in the order of contracts/dtype.hpp");

/// Bytes from element 0 to behind the last element.
std::int64_t spanned(const attest_tensor& tensor) {
  std::int64_t last = 0;
  for (int d = 0; d < tensor.dims; ++d) {
    if (tensor.shape[d] <= 0) return 0;
    last += (tensor.shape[d] - 1) * tensor.strides[d];
  }
  return (last + 1) * static_cast<std::int64_t>(size_bytes(static_cast<Dtype>(tensor.dtype)));
}

attest_scalar scalar_of(const char* name, const Json& value) {
  attest_scalar scalar{.name = name, .number = 0, .integer = 0, .text = nullptr};
  if (value.is_boolean()) {
    scalar.integer = value.get<bool>() ? 1 : 0;
    scalar.number = static_cast<double>(scalar.integer);
  } else if (value.is_number_integer()) {
    scalar.integer = value.get<std::int64_t>();
    scalar.number = static_cast<double>(scalar.integer);
  } else if (value.is_number()) {
    scalar.number = value.get<double>();
    scalar.integer = static_cast<std::int64_t>(scalar.number);
  }
  return scalar;
}

}  // namespace

PluginCall::PluginCall(std::string_view request, std::span<std::byte> memory) try {
  const Json json = Json::parse(request);
  const Json& call = json.at("call");
  for (const auto& [name, value] : call.at("tensors").items()) {
    const auto& shape = sizes_.emplace_back(value.at("shape").get<std::vector<std::int64_t>>());
    const auto& strides = sizes_.emplace_back(value.at("strides").get<std::vector<std::int64_t>>());
    const auto dtype = dtype_from_name(value.at("dtype").get<std::string>());
    if (!dtype) throw BackendError("tensor " + name + " has no dtype that is known");
    attest_tensor tensor{.name = keep(name),
                         .dtype = static_cast<attest_dtype>(*dtype),
                         .dims = static_cast<std::int32_t>(shape.size()),
                         .shape = shape.data(),
                         .strides = strides.data(),
                         .data = nullptr};
    if (!memory.empty()) {
      const auto at = value.at("at").get<std::int64_t>();
      const auto size = static_cast<std::int64_t>(memory.size());
      if (at < 0 || at > size || spanned(tensor) > size - at) {
        throw BackendError("tensor " + name + " lies outside the shared memory");
      }
      tensor.data = memory.data() + at;
    }
    tensors_.push_back(tensor);
  }
  for (const auto& [name, value] : call.at("scalars").items()) {
    if (value.is_array()) {
      for (std::size_t i = 0; i < value.size(); ++i) {
        scalars_.push_back(scalar_of(keep(name + "." + std::to_string(i)), value[i]));
      }
      continue;
    }
    scalars_.push_back(scalar_of(keep(name), value));
    if (value.is_string()) scalars_.back().text = keep(value.get<std::string>());
  }
  const Json options = json.value("options", Json::object());
  call_ = {.signature = keep(call.at("signature").get<std::string>()),
           .tensors = tensors_.data(),
           .tensor_count = tensors_.size(),
           .scalars = scalars_.data(),
           .scalar_count = scalars_.size(),
           .form = keep(options.value("form", "")),
           .kv_splits = options.value("kv_splits", std::int64_t{0})};
} catch (const nlohmann::json::exception& error) {
  throw BackendError(std::string("request: ") + error.what());
}

}  // namespace attest
