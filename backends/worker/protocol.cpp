#include "backends/worker/protocol.hpp"

#include <nlohmann/json.hpp>

#include "backends/worker/description_json.hpp"

namespace attest {
namespace {

using Json = nlohmann::ordered_json;

Json tensor_json(const TensorArgument& tensor) {
  Json json = {{"dtype", name(tensor.meta.dtype)},
               {"shape", tensor.meta.shape},
               {"strides", tensor.meta.strides},
               {"role", name(tensor.role)}};
  if (tensor.at >= 0) {
    json["at"] = tensor.at;
    json["first"] = tensor.first;
    json["end"] = tensor.end;
  }
  return json;
}

Json call_json(std::span<const Argument> arguments, Signature signature) {
  Json tensors = Json::object();
  Json scalars = Json::object();
  for (const Argument& argument : arguments) {
    if (const auto* tensor = std::get_if<TensorArgument>(&argument.value)) {
      tensors[argument.name] = tensor_json(*tensor);
      continue;
    }
    std::visit(
        [&](const auto& value) {
          if constexpr (!std::is_same_v<std::decay_t<decltype(value)>, TensorArgument>) {
            scalars[argument.name] = value;
          }
        },
        argument.value);
  }
  return {{"signature", name(signature)}, {"tensors", tensors}, {"scalars", scalars}};
}

Json message(const char* ask) { return {{"attest", worker_protocol}, {"ask", ask}}; }

/// The object of a reply. \throws BackendError
Json reply_object(std::string_view reply, const std::string& from) {
  Json json = Json::parse(reply, nullptr, false);
  if (!json.is_object()) {
    throw BackendError(from +
                       ": the reply is no JSON object: " + std::string(reply.substr(0, 200)));
  }
  const int version = json.value("attest", 0);
  if (version != worker_protocol) {
    throw BackendError(from + " speaks version " + std::to_string(version) +
                       " of the worker protocol, this attest version " +
                       std::to_string(worker_protocol));
  }
  if (json.contains("error")) {
    const Json& error = json["error"];
    const std::string text = error.is_string() ? error.get<std::string>() : error.dump();
    throw BackendError(text.starts_with(from) ? text : from + ": " + text);
  }
  return json;
}

/// What a member of another type or a missing one becomes.
template <class Read>
auto reading(const std::string& from, Read&& read) try {
  return read();
} catch (const nlohmann::json::exception& error) {
  throw BackendError(from + ": " + error.what());
}

}  // namespace

std::string describe_message() { return message("describe").dump(); }

std::string hello_message(std::string_view backend, int device) {
  Json json = message("hello");
  json["backend"] = backend;
  json["device"] = device;
  return json.dump();
}

std::string supports_message(std::span<const Argument> arguments, Signature signature) {
  Json json = message("supports");
  json["call"] = call_json(arguments, signature);
  return json.dump();
}

std::string run_message(std::span<const Argument> arguments, Signature signature,
                        std::size_t shared_bytes, std::int64_t number, const RunOptions& options) {
  Json json = message("run");
  json["case"] = number;
  json["shared_bytes"] = shared_bytes;
  json["call"] = call_json(arguments, signature);
  json["options"] = {{"form", options.form},
                     {"kv_splits", options.kv_splits},
                     {"threads", options.threads},
                     {"device", options.device}};
  return json.dump();
}

std::vector<Description> descriptions_from(std::string_view reply, const std::string& from) {
  const Json json = reply_object(reply, from);
  return reading(from, [&] {
    std::vector<Description> list;
    for (const Json& one : json.at("backends")) list.push_back(read_description(one.dump(), from));
    return list;
  });
}

Description description_from(std::string_view reply, const std::string& from) {
  Json json = reply_object(reply, from);
  json.erase("attest");
  return read_description(json.dump(), from);
}

Answer answer_from(std::string_view reply, const std::string& from) {
  const Json json = reply_object(reply, from);
  return reading(from, [&] {
    return json.at("yes").get<bool>() ? Answer{} : Answer::no(json.at("reason").get<std::string>());
  });
}

RunReply run_reply_from(std::string_view reply, const std::string& from) {
  const Json json = reply_object(reply, from);
  return reading(from, [&] {
    RunReply run;
    for (const auto& [key, kind] : {std::pair{"raised", RunReply::Kind::raised},
                                    {"failed", RunReply::Kind::failed},
                                    {"lost", RunReply::Kind::lost}}) {
      if (!json.contains(key)) continue;
      run.kind = kind;
      run.text = json.at(key).get<std::string>();
    }
    run.engine = json.at("engine").get<std::string>();
    run.form = json.value("form", "");
    run.counters = json.value("counters", std::map<std::string, std::int64_t>());
    run.lints = json.value("lints", std::vector<std::string>());
    return run;
  });
}

std::string alive_text(std::string_view frame) {
  const Json json = Json::parse(frame, nullptr, false);
  return json.is_object() && json.contains("alive") && json["alive"].is_string()
             ? json["alive"].get<std::string>()
             : std::string();
}

}  // namespace attest
