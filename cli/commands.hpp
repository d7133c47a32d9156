#pragma once

#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace attest {

/// How a command ended. `leave_now`: a thread may still be inside a kernel, so the process must end
/// without running destructors.
struct Ending {
  int code = 0;
  bool leave_now = false;
};

/// What the command line asks for.
struct Chosen {
  std::vector<std::string> arguments;  ///< as given, for records
  std::string program;                 ///< how a shell gets this program again
  std::function<Ending()> action;      ///< set while the command line is parsed
};

// One per file. Each adds its command with its flags; parsing it sets chosen.action.
void add_doctor(CLI::App& app, Chosen& chosen);
void add_run(CLI::App& app, Chosen& chosen);
void add_replay(CLI::App& app, Chosen& chosen);
void add_fixture(CLI::App& app, Chosen& chosen);
void add_check(CLI::App& app, Chosen& chosen);
void add_explain(CLI::App& app, Chosen& chosen);
void add_bench(CLI::App& app, Chosen& chosen);
void add_mutants(CLI::App& app, Chosen& chosen);
void add_worker(CLI::App& app, Chosen& chosen);

}  // namespace attest
