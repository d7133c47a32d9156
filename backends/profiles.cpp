#include "backends/profiles.hpp"

#include <cmath>
#include <deque>
#include <nlohmann/json.hpp>
#include <set>

#include "backends/embedded_profiles.hpp"
#include "memory/tensor_source.hpp"

namespace attest {
namespace {

using Json = nlohmann::json;

constexpr int schema = 1;

/// Reads the members of one object and remembers which ones were asked for.
class Fields {
 public:
  Fields(const Json& object, std::string file, std::string pointer)
      : object_(object), file_(std::move(file)), pointer_(std::move(pointer)) {
    if (!object_.is_object()) fail("", "must be an object, is " + std::string(object_.type_name()));
  }

  [[noreturn]] void fail(const std::string& member, const std::string& what) const {
    const std::string at = member.empty() ? pointer_ : pointer_ + "/" + member;
    throw ProfileError(file_ + ": " + (at.empty() ? "/" : at) + ": " + what);
  }

  const Json& member(const char* name) {
    asked_.insert(name);
    const auto found = object_.find(name);
    if (found == object_.end()) fail(name, "is missing");
    return *found;
  }
  std::string text(const char* name) {
    const Json& value = member(name);
    if (!value.is_string()) fail(name, "must be a string, is " + value.dump());
    if (value.get_ref<const std::string&>().empty()) fail(name, "must not be empty");
    return value.get<std::string>();
  }
  bool flag(const char* name) {
    const Json& value = member(name);
    if (!value.is_boolean()) fail(name, "must be true or false, is " + value.dump());
    return value.get<bool>();
  }
  int count(const char* name, int low, int high) {
    const Json& value = member(name);
    const bool whole = value.is_number_integer();
    if (!whole || value < low || value > high) {
      fail(name, "must be a whole number in [" + std::to_string(low) + ", " + std::to_string(high) +
                     "], is " + value.dump());
    }
    return value.get<int>();
  }
  /// A number in (0, high].
  double positive(const char* name, double high) {
    const Json& value = member(name);
    const double number = value.is_number() ? value.get<double>() : std::nan("");
    if (!(number > 0 && number <= high)) {
      fail(name,
           "must be a number above 0 and at most " + Json(high).dump() + ", is " + value.dump());
    }
    return number;
  }
  Dtype dtype(const char* name) {
    const std::string word = text(name);
    const auto found = dtype_from_name(word);
    if (!found || !is_floating(*found)) fail(name, "is not a floating dtype: \"" + word + "\"");
    return *found;
  }
  void refuse_unknown() const {
    for (const auto& [name, value] : object_.items()) {
      if (!asked_.contains(name)) fail(name, "is not a field of a profile");
    }
  }

 private:
  const Json& object_;
  std::string file_, pointer_;
  std::set<std::string> asked_;
};

std::map<std::string, double> z_limits(Fields& fields, const std::string& file) {
  const Json& object = fields.member("z_limit");
  Fields limits(object, file, "/z_limit");
  std::map<std::string, double> result;
  for (const auto& [recipe, value] : object.items()) {
    if (!recipe_from_name(recipe)) limits.fail(recipe, "is not the name of a recipe");
    result[recipe] = limits.positive(recipe.c_str(), 100);
  }
  return result;
}

Json parse_json(std::string_view text, const std::string& file) {
  if (text.find('\0') != std::string_view::npos) {
    throw ProfileError(file + ": /: is not JSON: it has a NUL byte");
  }
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& error) {
    throw ProfileError(file + ": /: is not JSON: " + error.what());
  }
}

const std::deque<NumericsProfile>& built_in_profiles() {
  static const std::deque<NumericsProfile> profiles = [] {
    std::deque<NumericsProfile> list;
    for (const EmbeddedProfile& file : embedded_profiles()) {
      list.push_back(parse_profile(file.json, file.file_name));
    }
    return list;
  }();
  return profiles;
}

}  // namespace

NumericsProfile parse_profile(std::string_view json, std::string_view file_name) {
  const std::string file(file_name);
  const Json object = parse_json(json, file);
  Fields fields(object, file, "");
  fields.count("schema", schema, schema);
  NumericsProfile profile;
  profile.implementation = fields.text("implementation");
  profile.version = fields.text("version");
  profile.engine = fields.text("engine");
  profile.revision = fields.count("revision", 1, 1'000'000);
  profile.accumulate = fields.dtype("accumulate");
  profile.p_dtype = fields.dtype("p_dtype");
  profile.p_follows_q_dtype = fields.flag("p_follows_q_dtype");
  profile.denominator_sums_rounded_p = fields.flag("denominator_sums_rounded_p");
  profile.maximum_starts_at_sink = fields.flag("maximum_starts_at_sink");
  profile.exp_relative_error = fields.positive("exp_relative_error", 0.1);
  profile.q_scaled_in_input_dtype = fields.flag("q_scaled_in_input_dtype");
  profile.denormals_are_zero = fields.flag("denormals_are_zero");
  profile.kv_splits = fields.count("kv_splits", 1, 1024);
  profile.z_limit = z_limits(fields, file);
  fields.refuse_unknown();
  return profile;
}

const NumericsProfile& built_in_profile(std::string_view implementation, std::string_view engine) {
  for (const NumericsProfile& profile : built_in_profiles()) {
    if (profile.implementation == implementation && profile.engine == engine) return profile;
  }
  throw ProfileError("no built-in numerics profile of " + std::string(implementation) + "@" +
                     std::string(engine));
}

}  // namespace attest
