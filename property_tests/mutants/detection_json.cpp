#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>

#include "contracts/printable.hpp"
#include "fixtures/fixture_error.hpp"
#include "fixtures/json_reader.hpp"
#include "property_tests/mutants/detection.hpp"
#include "property_tests/mutants/explained.hpp"
#include "property_tests/mutants/later_mutants.hpp"

namespace attest {
namespace {

using Json = nlohmann::json;

constexpr Outcome outcomes[] = {Outcome::killed, Outcome::survived, Outcome::equivalent,
                                Outcome::elsewhere, Outcome::not_run};

/// Batch of a mutant that was written after the oracles were fixed, or 0; read by people, not by
/// add_recorded.
int batch_of(const Trial& t) {
  const LaterMutant* const row = later_mutant(t.mutant);
  return row != nullptr ? row->batch : 0;
}

/// What names the mutant's mistake, and how the diagnosis did: read by people, not by add_recorded.
Json naming_of(const Trial& t) {
  const auto all = all_mutants();
  const auto at =
      std::find_if(all.begin(), all.end(), [&](const Mutant& one) { return one.name == t.mutant; });
  if (at == all.end()) return nullptr;
  return {{"about", name(diagnosable(*at).subject)},
          {"says_it", diagnosable(*at).names},
          {"named", name(named(*at, t))}};
}

Json json_of(const Trial& t) {
  return {{"kind", "mutant"},
          {"mutant", t.mutant},
          {"keys", t.keys},
          {"policy", t.policy},
          {"outcome", name(t.outcome)},
          {"killed_by", t.killed_by},
          {"oracles", t.oracles},
          {"numbers_by", t.numbers_by},
          {"cases", t.cases},
          {"numbers_cases", t.numbers_cases},
          {"seconds", t.seconds},
          {"says", t.says},
          {"diagnosis", t.diagnosis},
          {"hypothesis", naming_of(t)},
          {"later", batch_of(t) > 0},
          {"batch", batch_of(t)},
          {"honest_cases", t.honest_cases},
          {"false_failures", t.false_failures},
          {"false_failure", t.false_failure},
          {"shrunk_requests", t.shrunk_requests},
          {"shrunk_trials", t.shrunk_trials},
          {"shrunk_bytes", t.shrunk_bytes},
          {"shrunk", t.shrunk}};
}

std::vector<std::string> texts(const JsonReader& json) {
  std::vector<std::string> list;
  for (const JsonReader& one : json.elements()) list.push_back(one.text());
  return list;
}

/// Sums of as many of them as a file can hold fit.
constexpr std::int64_t most_counted = std::int64_t{1} << 40;

std::int64_t count(JsonObjectReader& object, std::string_view key) {
  return object.required(key).integer(0, most_counted);
}

double seconds(const JsonReader& json) {
  const double value = json.number();
  if (value < 0 || value > 1e9) json.fail("no number of seconds from 0 to 1e9");
  return value;
}

Trial trial_from(JsonObjectReader& object) {
  Trial t;
  t.mutant = object.required("mutant").text();
  t.keys = object.required("keys").integer(1, most_counted);
  t.policy = object.required("policy").text();
  t.outcome = object.required("outcome").word(std::span<const Outcome>(outcomes));
  t.killed_by = object.required("killed_by").text();
  t.oracles = texts(object.required("oracles"));
  t.numbers_by = object.required("numbers_by").text();
  t.cases = count(object, "cases");
  t.numbers_cases = count(object, "numbers_cases");
  t.seconds = seconds(object.required("seconds"));
  t.says = object.required("says").text();
  t.diagnosis = object.required("diagnosis").text();
  t.honest_cases = count(object, "honest_cases");
  t.false_failures = count(object, "false_failures");
  t.false_failure = object.required("false_failure").text();
  t.shrunk_requests = count(object, "shrunk_requests");
  t.shrunk_trials = count(object, "shrunk_trials");
  if (const auto bytes = object.optional("shrunk_bytes")) {
    t.shrunk_bytes = bytes->integer(0, most_counted);
  }
  t.shrunk = object.required("shrunk").text();
  // For people; looked up again here. Older records lack them.
  object.optional("hypothesis");
  if (const auto later = object.optional("later")) later->boolean();
  if (const auto batch = object.optional("batch")) batch->integer(0, most_counted);
  object.finish();
  return t;
}

/// Reads records line by line.
class RecordReader {
 public:
  RecordReader(std::string_view file, Detection& run) : file_(file), run_(run) {}

  /// \throws FixtureError naming `place`, the JSON pointer and the value
  void add(std::string_view line, std::string_view place) {
    const JsonValue value = parse_json(line, place);
    JsonObjectReader object(JsonReader(value, place));
    const JsonReader kind = object.required("kind");
    if (!has_header_ && (kind.text() == "mutant" || kind.text() == "summary")) {
      kind.fail(quote(kind.text()) +
                " before the record's header: what the run had planned is lost");
    }
    if (kind.text() == "mutant") {
      run_.trials.push_back(trial_from(object));
      ++trials_;
    } else if (kind.text() == "header") {
      end();
      has_header_ = true;
      add_header(object);
    } else if (kind.text() == "summary") {
      interrupted_ = object.required("interrupted").boolean();
      object.finish();
    } else {
      kind.fail(quote(kind.text()) + ", expected one of header, mutant, summary");
    }
  }

  /// The last line of a run that was killed while it wrote.
  void add_half_a_line() { half_ = true; }

  /// Of one record: what is missing, and why. \throws FixtureError where more was tried than
  /// planned
  void end() {
    if (planned_ >= 0 && trials_ > planned_) {
      throw FixtureError(std::string(file_) + ": holds " + std::to_string(trials_) +
                         " trials, and its header's /planned is " + std::to_string(planned_));
    }
    if (half_ && planned_ < 0)
      run_.cut_short.push_back(printable(file_) + ": its last line is cut");
    if (planned_ > trials_) {
      const std::string there = std::to_string(trials_) + " of " + std::to_string(planned_);
      run_.missing += planned_ - trials_;
      run_.cut_short.push_back(printable(file_) + ": " + there + " trials: the run was " +
                               (interrupted_ ? "interrupted" : "killed, or has not ended"));
    }
    planned_ = -1;
    trials_ = 0;
    interrupted_ = half_ = false;
  }

 private:
  void add_header(JsonObjectReader& object) {
    const JsonReader schema = object.required("schema");
    if (schema.integer() != 1) schema.fail("this program reads schema 1");
    for (std::string& command : texts(object.required("commands"))) {
      run_.commands.push_back(std::move(command));
    }
    run_.revision = object.required("revision").text();
    run_.compiler = object.required("compiler").text();
    run_.cpu = object.required("cpu").text();
    run_.cores = object.required("cores").integer(0, most_counted);
    if (const auto planned = object.optional("planned")) {
      planned_ = planned->integer(0, most_counted);
    }
    object.finish();
  }

  std::string_view file_;
  Detection& run_;
  // Of the record that is being read.
  std::int64_t planned_ = -1, trials_ = 0;  ///< -1: an older one does not say
  bool has_header_ = false, interrupted_ = false, half_ = false;
};

std::string in_one_line(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::string header_line(const Detection& run) {
  return in_one_line({{"kind", "header"},
                      {"schema", 1},
                      {"commands", run.commands},
                      {"revision", run.revision},
                      {"compiler", run.compiler},
                      {"cpu", run.cpu},
                      {"cores", run.cores},
                      {"planned", static_cast<std::int64_t>(run.trials.size()) + run.missing}});
}

std::string trial_line(const Trial& trial) { return in_one_line(json_of(trial)); }

std::string summary_line(bool interrupted) {
  return in_one_line({{"kind", "summary"}, {"interrupted", interrupted}});
}

std::string detection_json(const Detection& run) {
  std::string text = header_line(run) + '\n';
  for (const Trial& trial : run.trials) text += trial_line(trial) + '\n';
  return text + summary_line(run.missing > 0) + '\n';
}

void add_recorded(std::string_view text, std::string_view file, Detection& run) {
  RecordReader reader(file, run);
  int number = 0;
  while (!text.empty()) {
    const std::size_t size = text.size();
    const std::size_t end = std::min(text.find('\n'), size);
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (line.empty()) continue;
    const bool is_cut = end == size && !nlohmann::json::accept(line);
    if (is_cut && number > 1) {
      reader.add_half_a_line();
    } else {
      reader.add(line, std::string(file) + ", line " + std::to_string(number));
    }
  }
  reader.end();
}

}  // namespace attest
