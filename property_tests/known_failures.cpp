#include "property_tests/known_failures.hpp"

#include <algorithm>
#include <chrono>

#include "backends/registry.hpp"
#include "contracts/printable.hpp"
#include "contracts/rules.hpp"
#include "fixtures/json_reader.hpp"
#include "fixtures/read_file.hpp"
#include "property_tests/feature_words.hpp"
#include "property_tests/report/by_count.hpp"
#include "property_tests/report/near_names.hpp"
#include "property_tests/report/numbers.hpp"
#include "reference/oracles.hpp"

namespace attest {
namespace {

std::string text_or_empty(JsonObjectReader& object, std::string_view key) {
  const auto json = object.optional(key);
  return json ? json->text() : std::string();
}

/// Days compare as their texts do.
void require_a_day(const JsonReader& json) {
  const std::string text = json.text();
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  bool right = text.size() == 10;
  for (std::size_t i = 0; right && i < text.size(); ++i) {
    right = i == 4 || i == 7 ? text[i] == '-' : is_digit(text[i]);
  }
  if (right) {
    const std::chrono::year_month_day day{
        std::chrono::year(std::stoi(text.substr(0, 4))),
        std::chrono::month(static_cast<unsigned>(std::stoi(text.substr(5, 2)))),
        std::chrono::day(static_cast<unsigned>(std::stoi(text.substr(8, 2))))};
    right = day.ok();
  }
  if (!right) json.fail(quote(text) + " is no day as 2027-01-31");
}

/// What failure_kind() may say, rules aside.
std::vector<std::string> kinds_but_rules() {
  std::vector<std::string> kinds = {"damage", "poison"};  // launch_pair.cpp
  for (const Oracle& oracle : all_oracles()) kinds.emplace_back(oracle.name);
  for (const Verdict verdict : {Verdict::mismatch, Verdict::crashed, Verdict::hung}) {
    kinds.emplace_back(name(verdict));
  }
  return kinds;
}

/// A word that no failure has would hide nothing and complain of nothing.
void require_a_kind(const JsonReader& json) {
  const std::string kind = json.text();
  const std::vector<std::string> kinds = kinds_but_rules();
  if (find_rule(kind) != nullptr || std::ranges::find(kinds, kind) != kinds.end()) return;
  std::vector<std::string> all = kinds;
  for (const Rule& rule : all_rules()) all.emplace_back(rule.id);
  json.fail(quote(kind) + ", expected one of " + joined(kinds) +
            ", or a rule that attest explain lists" + did_you_mean(kind, all));
}

void require_a_feature(const JsonReader& json) {
  const std::string word = json.text();
  if (is_feature_word(word)) return;
  json.fail(quote(word) + ", expected one of " + joined(feature_words()));
}

KnownFailure read_entry(const JsonReader& json) {
  JsonObjectReader object(json);
  KnownFailure entry;
  entry.name = object.required("name").text();
  entry.issue = object.required("issue").text();
  const JsonReader expires = object.required("expires");
  require_a_day(expires);
  entry.expires = expires.text();
  entry.backend = object.required("backend").text();
  entry.problem = text_or_empty(object, "problem");
  if (const auto features = object.optional("features")) {
    for (const JsonReader& word : features->elements()) {
      require_a_feature(word);
      entry.features.push_back(word.text());
    }
  }
  if (const auto kind = object.optional("kind")) {
    require_a_kind(*kind);
    entry.kind = kind->text();
  }
  object.finish();
  // An entry that fits everything would hide everything.
  for (const auto& [key, value] :
       {std::pair("name", &entry.name), {"issue", &entry.issue}, {"backend", &entry.backend}}) {
    if (value->empty()) json.fail(std::string(key) + " is empty");
  }
  return entry;
}

bool means_backend(std::string_view wanted, std::string_view name) {
  if (!name.starts_with(wanted)) return false;
  return name.size() == wanted.size() ||
         std::string_view(".-@").find(name[wanted.size()]) != std::string_view::npos;
}

bool fits(const KnownFailure& entry, const CaseResult& result) {
  const auto has_word = [&](const std::string& word) {
    return std::find(result.features.begin(), result.features.end(), word) != result.features.end();
  };
  return means_backend(entry.backend, result.judgement.backend) &&
         result.problem.find(entry.problem) != std::string::npos &&
         std::all_of(entry.features.begin(), entry.features.end(), has_word);
}

/// A case that was not judged says nothing about a kernel.
bool was_judged(Verdict verdict) {
  return verdict != Verdict::unsupported && verdict != Verdict::unavailable;
}

}  // namespace

KnownFailures::KnownFailures(std::string_view text, std::string_view file) {
  const JsonValue value = parse_json(text, file);
  JsonObjectReader object(JsonReader(value, file));
  const JsonReader schema = object.required("schema");
  if (schema.integer() != 1) schema.fail("this program reads schema 1");
  const JsonReader known = object.required("known");
  for (const JsonReader& entry : known.elements()) {
    entries_.push_back(read_entry(entry));
    const auto same = [&](const KnownFailure& one) { return one.name == entries_.back().name; };
    if (std::count_if(entries_.begin(), entries_.end(), same) > 1) {
      entry.fail("the name " + quote(entries_.back().name) + " stands twice");
    }
  }
  object.finish();
  counts_.resize(entries_.size());
}

std::unique_ptr<KnownFailures> KnownFailures::from_file(const std::filesystem::path& file) {
  constexpr std::size_t most = std::size_t{1} << 20;
  return std::make_unique<KnownFailures>(read_file_or_pipe(file, most), file.string());
}

std::vector<std::string> KnownFailures::expired(std::string_view today) const {
  std::vector<std::string> sentences;
  for (const KnownFailure& entry : entries_) {
    if (entry.expires >= today) continue;
    sentences.push_back("known failure \"" + entry.name + "\" expired on " + entry.expires + ": " +
                        entry.issue);
  }
  return sentences;
}

std::vector<std::string> KnownFailures::misspelt(std::span<const std::string_view> backends) const {
  const std::vector<std::string> candidates = names_to_mean(backends);
  std::vector<std::string> sentences;
  for (const KnownFailure& entry : entries_) {
    const auto meant = [&](std::string_view name) { return means_backend(entry.backend, name); };
    if (std::ranges::any_of(backends, meant)) continue;
    const std::string near = did_you_mean(entry.backend, candidates);
    if (near.empty()) continue;
    sentences.push_back("known failure " + quote(entry.name) + " is about " + quote(entry.backend) +
                        ", which is no backend" + near);
  }
  return sentences;
}

const KnownFailure* KnownFailures::meet(const CaseResult& result) {
  const Verdict verdict = result.judgement.verdict;
  if (!was_judged(verdict)) return nullptr;
  const KnownFailure* found = nullptr;
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const KnownFailure& entry = entries_[i];
    if (!fits(entry, result)) continue;
    ++counts_[i].judged;
    if (!is_failure(verdict)) continue;
    const std::string kind = failure_kind(result.judgement);
    if (!entry.kind.empty() && entry.kind != kind) {
      ++counts_[i].otherwise[kind];
      continue;
    }
    ++counts_[i].failed;
    if (found == nullptr) found = &entry;
  }
  return found;
}

std::vector<std::string> KnownFailures::contradicted() const {
  std::vector<std::string> sentences;
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const KnownFailure& entry = entries_[i];
    const Count& count = counts_[i];
    if (count.judged == 0 || count.failed > 0) continue;
    const std::string judged = counted(count.judged, "case") + " that it is about";
    std::string text = "known failure \"" + entry.name + "\" ";
    if (count.otherwise.empty()) {
      text += "no longer fails, in " + judged + ": drop it";
    } else {
      text += "does not fail by " + entry.kind + ": of " + judged;
      for (const auto& [kind, failed] : by_count(count.otherwise)) {
        text += (text.ends_with("about") ? ", " : " and ") + std::to_string(failed) +
                (failed == 1 ? " fails by " : " fail by ") + kind;
      }
      text += "; correct its kind";
    }
    sentences.push_back(text + ", or see " + entry.issue);
  }
  return sentences;
}

std::string today() {
  const auto now = std::chrono::floor<std::chrono::days>(std::chrono::system_clock::now());
  const std::chrono::year_month_day day(now);
  const auto two = [](unsigned number) {
    return (number < 10 ? "0" : "") + std::to_string(number);
  };
  return std::to_string(static_cast<int>(day.year())) + "-" +
         two(static_cast<unsigned>(day.month())) + "-" + two(static_cast<unsigned>(day.day()));
}

}  // namespace attest
