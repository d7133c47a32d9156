#include "property_tests/run_wire.hpp"

#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "contracts/resource_error.hpp"
#include "fixtures/fixture.hpp"
#include "memory/pool_memory.hpp"

namespace attest {
namespace {

using nlohmann::json;

static_assert(std::endian::native == std::endian::little, "raw arrays are sent as they lie");

constexpr std::size_t length_bytes = 8;

json options_to_json(const RunOptions& o) {
  return {{"sentinel", o.sentinel},        {"form", o.form},     {"kv_splits", o.kv_splits},
          {"threads", o.threads},          {"device", o.device}, {"graph", o.graph},
          {"thread_order", o.thread_order}};
}

RunOptions options_from_json(const json& j) {
  RunOptions o;
  o.sentinel = j.at("sentinel");
  o.form = j.at("form");
  o.kv_splits = j.at("kv_splits");
  o.threads = j.at("threads");
  o.device = j.at("device");
  o.graph = j.at("graph");
  o.thread_order = j.at("thread_order");
  return o;
}

template <class T>
void append(std::string& bytes, const std::vector<T>& values) {
  if (values.empty()) return;
  const std::size_t at = bytes.size();
  bytes.resize(at + values.size() * sizeof(T));
  std::memcpy(&bytes[at], values.data(), values.size() * sizeof(T));
}

/// Takes `count` elements off the front of `bytes`.
template <class T>
std::vector<T> take(std::string_view& bytes, std::size_t count) {
  if (count > bytes.size() / sizeof(T))
    throw BackendError("worker reply: its arrays are cut short");
  const std::string_view front = bytes.substr(0, count * sizeof(T));
  std::vector<T> values(count);
  if (count > 0) std::memcpy(values.data(), front.data(), front.size());
  bytes.remove_prefix(front.size());
  return values;
}

std::string with_header(const json& header) {
  const std::string text = header.dump();
  std::string bytes(length_bytes, '\0');
  const std::uint64_t length = text.size();
  std::memcpy(bytes.data(), &length, length_bytes);
  return bytes + text;
}

/// What the word j[key] names.
template <class T>
T named(const json& j, const char* key, std::optional<T> (*from_name)(std::string_view)) {
  const std::string& word = j.at(key).get_ref<const std::string&>();
  const std::optional<T> value = from_name(word);
  if (!value) throw BackendError(std::string(key) + " = \"" + word + "\" names nothing");
  return *value;
}

/// The JSON object at the front; `bytes` then holds the arrays.
json take_header(std::string_view& bytes) {
  std::uint64_t length = 0;
  if (bytes.size() >= length_bytes) std::memcpy(&length, bytes.data(), length_bytes);
  if (bytes.size() < length_bytes || length > bytes.size() - length_bytes) {
    throw BackendError("worker reply: " + std::to_string(bytes.size()) +
                       " bytes do not hold the header they announce");
  }
  json header = json::parse(bytes.substr(length_bytes, length));
  bytes.remove_prefix(length_bytes + length);
  return header;
}

}  // namespace

std::string encode_request(std::string_view backend, const Call& call, const TensorSource& source,
                           const RunOptions& options) {
  const PoisonPlan& poison = source.poison();
  const json request = {{"backend", backend},
                        {"problem", problem_to_json(source.problem())},
                        {"recipe", name(source.recipe())},
                        {"seed", source.seed()},
                        {"poison", name(poison.poison)},
                        {"nan_in_v_tail", poison.nan_in_v_tail},
                        {"call", call_to_json(call)},
                        {"options", options_to_json(options)}};
  return request.dump();
}

RunRequest decode_request(std::string_view bytes) try {
  const json j = json::parse(bytes);
  RunRequest request;
  request.backend = j.at("backend");
  request.problem = problem_from_json(j.at("problem").get_ref<const std::string&>(), "request");
  request.recipe = named(j, "recipe", recipe_from_name);
  request.seed = j.at("seed");
  request.poison.poison = named(j, "poison", poison_from_name);
  request.poison.nan_in_v_tail = j.at("nan_in_v_tail");
  request.call = call_from_json(j.at("call").get_ref<const std::string&>(), "request");
  request.options = options_from_json(j.at("options"));
  return request;
} catch (const std::exception& error) {
  throw BackendError(std::string("worker request: ") + error.what());
}

std::string encode_result(const RunResult& result) {
  json header = {{"form", result.form},
                 {"engine", result.engine},
                 {"counters", result.counters},
                 {"lints", result.lints},
                 {"damage", result.damage},
                 {"rows", result.out.rows},
                 {"heads", result.out.heads},
                 {"dim", result.out.dim},
                 {"values", result.out.values.size()},
                 {"untouched", result.out.untouched.size()},
                 {"lse", result.out.lse.size()}};
  for (const StrayRead& read : result.stray_reads) {
    header["stray_reads"].push_back(
        {read.half == PoolHalf::v, read.offset, static_cast<int>(read.region), read.instruction});
  }
  if (result.raised) header["raised"] = *result.raised;
  std::string bytes = with_header(header);
  append(bytes, result.out.values);
  append(bytes, result.out.untouched);
  append(bytes, result.out.lse);
  return bytes;
}

std::string encode_error(std::string_view what) { return with_header({{"error", what}}); }

std::string encode_shortage(int error, std::string_view place) {
  return with_header({{"shortage", error}, {"place", place}});
}

std::string encode_no_pool(std::string_view what) { return with_header({{"no_pool", what}}); }

RunResult decode_result(std::string_view bytes) try {
  const json header = take_header(bytes);
  if (header.contains("no_pool")) throw PoolUnavailable(header["no_pool"].get<std::string>());
  if (header.contains("shortage")) {
    throw ResourceError(header["shortage"].get<int>(),
                        "worker: " + header.at("place").get<std::string>());
  }
  if (header.contains("error")) throw BackendError(header["error"].get<std::string>());
  RunResult result;
  if (header.contains("raised")) result.raised = header["raised"].get<std::string>();
  result.form = header.at("form");
  result.engine = header.at("engine");
  result.counters = header.at("counters");
  result.lints = header.at("lints");
  result.damage = header.at("damage");
  for (const json& read : header.value("stray_reads", json::array())) {
    result.stray_reads.push_back({read.at(0).get<bool>() ? PoolHalf::v : PoolHalf::k, read.at(1),
                                  static_cast<Region>(read.at(2).get<int>()), read.at(3)});
  }
  result.out.rows = header.at("rows");
  result.out.heads = header.at("heads");
  result.out.dim = header.at("dim");
  result.out.values = take<float>(bytes, header.at("values"));
  result.out.untouched = take<std::uint8_t>(bytes, header.at("untouched"));
  result.out.lse = take<float>(bytes, header.at("lse"));
  return result;
} catch (const json::exception& error) {
  throw BackendError(std::string("worker reply: ") + error.what());
}

}  // namespace attest
