#include "cli/environment.hpp"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "backends/amx/emulation/engine.hpp"
#include "contracts/printable.hpp"
#include "memory/pool_memory.hpp"
#include "property_tests/in_flight.hpp"
#include "property_tests/judge.hpp"
#include "property_tests/report/console.hpp"

namespace attest {

std::string required_engines() {
  const char* value = std::getenv("ATTEST_REQUIRE");
  return value == nullptr ? "" : value;
}

void check_environment() {
  large_pool_wanted();
  if (const char* const amx = std::getenv("ATTEST_AMX"); amx != nullptr && *amx != 0) {
    static_cast<void>(amx::choose(amx));
  }
}

std::string program_of(const char* argv0) {
  const char* const amx = std::getenv("ATTEST_AMX");
  const std::string engine = amx == nullptr ? "" : "ATTEST_AMX=" + shell_word(amx) + " ";
  return engine + shell_word(argv0 == nullptr || *argv0 == 0 ? "attest" : argv0);
}

void report_killed_runs() {
  std::error_code none;
  const std::filesystem::path temporary = std::filesystem::temp_directory_path(none);
  if (none) return;
  const auto lines = keep_in_flight_in(temporary / ("attest-" + std::to_string(::getuid())));
  if (lines.empty()) return;
  const Console err = Console::of(STDERR_FILENO, "standard error");
  err.print("attest: an earlier run was killed while it judged:\n");
  for (const std::string& line : lines) err.print("  " + printable(line) + "\n");
}

}  // namespace attest
