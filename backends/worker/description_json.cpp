#include "backends/worker/description_json.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "backends/profiles.hpp"
#include "contracts/printable.hpp"

namespace attest {
namespace {

using Json = nlohmann::ordered_json;

/// The members of one object; what nobody asked for is refused in the end.
class Members {
 public:
  Members(const Json& object, std::string place) : object_(object), place_(std::move(place)) {
    if (!object_.is_object()) throw BackendError(place_ + ": is no object");
  }

  const Json* find(const char* name) {
    asked_.push_back(name);
    const auto found = object_.find(name);
    return found == object_.end() ? nullptr : &*found;
  }
  std::string text(const char* name, const char* otherwise = nullptr) {
    const Json* value = find(name);
    if (!value && otherwise) return otherwise;
    if (!value || !value->is_string()) fail(name, "must be a string", value);
    return value->get<std::string>();
  }
  bool flag(const char* name, bool otherwise) {
    const Json* value = find(name);
    if (!value) return otherwise;
    if (!value->is_boolean()) fail(name, "must be true or false", value);
    return value->get<bool>();
  }
  std::int64_t count(const char* name, std::int64_t otherwise, std::int64_t most) {
    const Json* value = find(name);
    if (!value) return otherwise;
    if (!value->is_number_integer() || *value < 0 || *value > most) {
      fail(name, "must be a whole number in [0, " + std::to_string(most) + "]", value);
    }
    return value->get<std::int64_t>();
  }
  std::vector<Dtype> dtypes(const char* name) {
    const Json* value = find(name);
    if (!value || !value->is_array() || value->empty()) fail(name, "must list dtypes", value);
    std::vector<Dtype> list;
    for (const Json& word : *value) {
      const auto dtype = word.is_string() ? dtype_from_name(word.get<std::string>()) : std::nullopt;
      if (!dtype || !is_floating(*dtype)) fail(name, "must list floating dtypes", &word);
      list.push_back(*dtype);
    }
    return list;
  }
  std::vector<std::int64_t> counts(const char* name) {
    const Json* value = find(name);
    if (!value) return {};
    std::vector<std::int64_t> list;
    for (const Json& one : *value) {
      if (!one.is_number_integer() || one < 1) fail(name, "must list whole numbers from 1", value);
      list.push_back(one.get<std::int64_t>());
    }
    return list;
  }
  void finish() const {
    for (const auto& [name, value] : object_.items()) {
      if (std::find(asked_.begin(), asked_.end(), name) == asked_.end()) {
        fail(name.c_str(), "is no member of this object", &value);
      }
    }
  }
  [[noreturn]] void fail(const char* name, const std::string& what, const Json* value) const {
    throw BackendError(place_ + "/" + name + ": " + what +
                       (value ? ", is " + value->dump().substr(0, 100) : ", is missing"));
  }

 private:
  const Json& object_;
  std::string place_;
  std::vector<std::string> asked_;
};

Capabilities capabilities_from(const Json& json, const std::string& place) {
  Members members(json, place);
  Capabilities can;
  const std::string word = members.text("signature");
  const auto signature = signature_from_name(word);
  if (!signature) throw BackendError(place + "/signature: \"" + word + "\" is no signature");
  can.signature = *signature;
  can.q_dtypes = members.dtypes("q_dtypes");
  can.kv_dtypes = members.dtypes("kv_dtypes");
  can.window = members.flag("window", false);
  can.softcap = members.flag("softcap", false);
  can.sinks = members.flag("sinks", false);
  can.tree_mask = members.flag("tree_mask", false);
  can.distinct_v_head_dim = members.flag("distinct_v_head_dim", false);
  can.length_dtype_reaches_offsets = members.flag("length_dtype_reaches_offsets", false);
  can.index_dtype_reaches_offsets = members.flag("index_dtype_reaches_offsets", false);
  can.max_len_is_exact = members.flag("max_len_is_exact", false);
  can.reads_v_past_kv_len = members.flag("reads_v_past_kv_len", false);
  can.forms = members.flag("forms", false);
  can.most_kv_splits = members.count("most_kv_splits", 0, 1024);
  can.page_sizes = members.counts("page_sizes");
  can.large_pools = false;  // they would not travel (call_image.hpp)
  can.isolate = true;
  members.finish();
  return can;
}

/// The declared roundings over the defaults, read as the built-in profiles are.
NumericsProfile profile_from(const Json& declared, const Description& kernel,
                             const std::string& place) {
  const NumericsProfile usual;
  const BackendName parts = split_backend_name(kernel.name);
  Json json = {{"schema", 1},
               {"revision", 1},
               {"accumulate", name(usual.accumulate)},
               {"p_dtype", name(usual.p_dtype)},
               {"p_follows_q_dtype", usual.p_follows_q_dtype},
               {"denominator_sums_rounded_p", usual.denominator_sums_rounded_p},
               {"maximum_starts_at_sink", usual.maximum_starts_at_sink},
               {"exp_relative_error", usual.exp_relative_error},
               {"q_scaled_in_input_dtype", usual.q_scaled_in_input_dtype},
               {"denormals_are_zero", usual.denormals_are_zero},
               {"kv_splits", usual.kv_splits},
               {"z_limit", Json::object()}};
  if (!declared.is_object()) throw BackendError(place + ": is no object");
  json.update(declared);
  json["implementation"] = parts.implementation + "." + parts.signature;
  json["version"] = kernel.version;
  json["engine"] = parts.engine;
  constexpr std::string_view file = "profile";
  try {
    return parse_profile(json.dump(), file);
  } catch (const ProfileError& error) {
    // "profile: /p_dtype: ...": its pointer goes on where the description's ends.
    std::string why = error.what();
    why.erase(0, std::min(why.size(), file.size() + 2));
    if (why.starts_with("/: ")) why.erase(0, 1);
    throw BackendError(place + why);
  }
}

void require_a_name(const std::string& name, const std::string& place) {
  const bool prints = std::ranges::all_of(name, [](char c) { return c > ' ' && c <= '~'; });
  if (!prints) throw BackendError(place + "\"" + printable(name) + "\" has bytes of no name");
  try {
    split_backend_name(name);
  } catch (const std::invalid_argument& error) {
    throw BackendError(place + error.what());
  }
}

}  // namespace

Description read_description(std::string_view text, const std::string& from) try {
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) throw BackendError(from + ": its description is not JSON");
  Members members(json, from + ": ");
  Description kernel;
  kernel.name = members.text("name");
  require_a_name(kernel.name, from + ": /name: ");
  kernel.says = members.text("says", "");
  kernel.version = members.text("version");
  kernel.only_when_named = members.text("only_when_named", "");
  kernel.devices = static_cast<int>(members.count("devices", 1, 1024));
  if (!members.flag("available", true)) kernel.available = Answer::no(members.text("reason"));
  members.find("reason");
  const Json* capabilities = members.find("capabilities");
  const Json* profile = members.find("profile");
  if (!capabilities) members.fail("capabilities", "must be an object", nullptr);
  kernel.capabilities = capabilities_from(*capabilities, from + ": /capabilities");
  kernel.profile = profile_from(profile ? *profile : Json::object(), kernel, from + ": /profile");
  members.finish();
  return kernel;
} catch (const BackendError&) {
  throw;
} catch (const std::exception& error) {  // of the JSON library
  throw BackendError(from + ": " + error.what());
}

}  // namespace attest
