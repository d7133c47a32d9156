#include <CLI/CLI.hpp>
#include <memory>

#include "backends/plugin/plugin_host.hpp"
#include "backends/registry.hpp"
#include "cli/commands.hpp"
#include "property_tests/isolated_backend.hpp"

namespace attest {
namespace {

struct Options {
  std::string plugin;
  std::vector<int> fds;
};

int work(const Options& options) {
  if (options.plugin.empty()) return worker_main(options.fds.back(), all_backends());
  return plugin_worker_main(options.plugin, options.fds.front(), options.fds.back());
}

}  // namespace

// The other end of isolated backends and plugins: started by attest itself, with the number of its
// socket and, for a plugin, of the shared memory before it.
void add_worker(CLI::App& app, Chosen& chosen) {
  CLI::App* command = app.add_subcommand("worker", "Run kernels for another attest process");
  command->group("");
  auto options = std::make_shared<Options>();
  command->add_option("--plugin", options->plugin, "Library to load");
  command->add_option("fd", options->fds, "Shared memory, and the stream socket to answer on")
      ->required()
      ->expected(1, 2);
  command->callback(
      [options, &chosen] { chosen.action = [options] { return Ending{work(*options)}; }; });
}

}  // namespace attest
