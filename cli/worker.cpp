#include <CLI/CLI.hpp>
#include <memory>

#include "backends/registry.hpp"
#include "cli/commands.hpp"
#include "property_tests/isolated_backend.hpp"

namespace attest {

// The other end of isolated backends: started by attest itself, with the number of its socket.
void add_worker(CLI::App& app, Chosen& chosen) {
  CLI::App* command = app.add_subcommand("worker", "Run kernels for another attest process");
  command->group("");
  auto fd = std::make_shared<int>(-1);
  command->add_option("fd", *fd, "Stream socket to answer on")->required();
  command->callback(
      [fd, &chosen] { chosen.action = [fd] { return Ending{worker_main(*fd, all_backends())}; }; });
}

}  // namespace attest
