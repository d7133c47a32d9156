#include "property_tests/report/doctor.hpp"

#include <nlohmann/json.hpp>

#include "backends/registry.hpp"
#include "property_tests/report/build_info.hpp"
#include "property_tests/report/numbers.hpp"
#include "property_tests/report/text_table.hpp"

namespace attest {
Diagnosis examine(std::span<const Backend* const> backends, std::string_view required) {
  Diagnosis diagnosis;
  diagnosis.machine = this_machine();
  for (const Backend* backend : backends) {
    const BackendName parts = split_backend_name(backend->name());
    diagnosis.backends.push_back({.name = std::string(backend->name()),
                                  .engine = parts.engine,
                                  .says = std::string(backend->says()),
                                  .version = backend->profile().version,
                                  .available = backend->available(),
                                  .only_when_named = std::string(backend->only_when_named()),
                                  .fault = is_deliberate_fault(*backend)});
  }
  diagnosis.required = required;
  diagnosis.unmet = unmet_requirements(required);
  return diagnosis;
}

std::string doctor_text(const Diagnosis& diagnosis, bool with_faults, const Console& console) {
  std::string text = to_string(build_info()) + "\n" + console.bold("machine") + "\n" +
                     machine_text(diagnosis.machine) + "\n";
  TextTable table({{"backend"}, {"here"}, {"what it is, or why not"}});
  std::int64_t faults = 0;
  std::int64_t usable = 0;
  std::vector<const Diagnosis::Entry*> when_named;
  for (const Diagnosis::Entry& entry : diagnosis.backends) {
    faults += entry.fault ? 1 : 0;
    if (entry.fault && !with_faults) continue;
    usable += entry.available ? 1 : 0;
    if (entry.available && !entry.only_when_named.empty()) when_named.push_back(&entry);
    table.add({entry.name, entry.available ? console.good("yes") : console.doubtful("no"),
               entry.available ? entry.says : entry.available.reason});
  }
  text += table.str() + "\n" + counted(usable, "backend") + " can run here";
  if (faults > 0 && !with_faults) {
    text += "; " + counted(faults, "faulty backend") +
            ", one for each fault, signature and engine, not listed (attest doctor --faults)";
  }
  text += ".\n";
  if (faults > 0 && diagnosis.mutants > 0) {
    text += "attest mutants tries " + counted(diagnosis.mutants, "mistake") +
            ": each fault on one engine, and those of calls, steps, graphs and rules.\n";
  }
  for (const Diagnosis::Entry* entry : when_named) {
    text += "attest run judges " + entry->name +
            " only when --backend names it so: " + entry->only_when_named + ".\n";
  }
  if (diagnosis.required.empty()) return text;
  for (const std::string& sentence : diagnosis.unmet)
    text += console.bad("unmet") + "  " + sentence + "\n";
  if (diagnosis.unmet.empty()) {
    text += console.good("met") + "  ATTEST_REQUIRE=" + diagnosis.required + "\n";
  }
  return text;
}

std::string doctor_json(const Diagnosis& diagnosis) {
  using Json = nlohmann::ordered_json;
  const BuildInfo& build = build_info();
  Json json = {{"kind", "doctor"},
               {"schema", 1},
               {"version", build.version},
               {"revision", build.revision},
               {"compiler", build.compiler},
               {"flags", build.flags},
               {"machine", Json::parse(machine_json(diagnosis.machine))},
               {"backends", Json::array()},
               {"required", diagnosis.required},
               {"unmet", diagnosis.unmet}};
  for (const Diagnosis::Entry& entry : diagnosis.backends) {
    json["backends"].push_back({{"name", entry.name},
                                {"engine", entry.engine},
                                {"says", entry.says},
                                {"version", entry.version},
                                {"available", entry.available.yes},
                                {"reason", entry.available.reason},
                                {"only_when_named", entry.only_when_named},
                                {"fault", entry.fault}});
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace attest
