#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <iostream>
#include <new>
#include <span>
#include <sstream>
#include <stdexcept>
#include <system_error>

#include "cli/commands.hpp"
#include "cli/environment.hpp"
#include "cli/flags.hpp"
#include "cli/usage.hpp"
#include "contracts/printable.hpp"
#include "contracts/resource_error.hpp"
#include "contracts/verdict.hpp"
#include "fixtures/fixture.hpp"
#include "property_tests/in_flight.hpp"
#include "property_tests/report/build_info.hpp"
#include "property_tests/report/console.hpp"

namespace attest {
namespace {

void describe_app(CLI::App& app, Chosen& chosen) {
  app.name("attest");
  app.description(
      "Tells whether an attention kernel for speculative decoding, called with the metadata a\n"
      "serving framework builds, computes what the scheduler meant.");
  app.set_version_flag("--version", to_string(build_info()), "Print version, compiler and flags");
  app.footer(exit_code_table());
  app.require_subcommand(1);
  add_doctor(app, chosen);
  add_run(app, chosen);
  add_replay(app, chosen);
  add_check(app, chosen);
  add_fixture(app, chosen);
  add_explain(app, chosen);
  add_bench(app, chosen);
  add_mutants(app, chosen);
  add_worker(app, chosen);
  refuse_empty_values(app);
}

/// What --help and --version ask for.
Ending say(const CLI::App& app, const CLI::Success& asked) {
  std::ostringstream text;
  const int code = app.exit(asked, text, text);
  Console::of(STDOUT_FILENO, "standard output").print(text.str());
  return {code};
}

int complain(int code, const std::string& message) {
  // Lines of our own stay lines; words in them are anybody's.
  std::string text = "attest: ";
  for (std::size_t at = 0; at <= message.size();) {
    const std::size_t end = std::min(message.find('\n', at), message.size());
    text += printable(std::string_view(message).substr(at, end - at)) + '\n';
    at = end + 1;
  }
  std::cerr << text;
  return code;
}

/// Every way a command can fail ends here, as one line that names the place.
Ending guarded(const std::function<Ending()>& action) {
  try {
    return action();
  } catch (const OutputClosed&) {
    return {exit_io};
  } catch (const FixtureError& error) {
    return {complain(exit_bad_input, error.what())};
  } catch (const std::invalid_argument& error) {
    return {complain(exit_usage, error.what())};
  } catch (const std::bad_alloc&) {
    return {complain(exit_internal, "out of memory")};
  } catch (const ResourceError& error) {
    return {complain(exit_internal, printable(error.what()))};
  } catch (const std::system_error& error) {
    return {complain(exit_io, printable(error.what()))};
  } catch (const std::exception& error) {
    return {complain(exit_internal, error.what())};
  }
}

/// A closed standard stream must not become the number of the next file that is opened: results
/// would be written into it. What stands in its place refuses them.
void occupy_standard_streams() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) >= 0) continue;
    ::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

int run_main(int argc, char** argv) {
  occupy_standard_streams();
  // A closed pipe is an error of write(), not the end of the process: workers and records come
  // first.
  std::signal(SIGPIPE, SIG_IGN);
  // So is a file that grows past `ulimit -f`.
  std::signal(SIGXFSZ, SIG_IGN);
  CLI::App app;
  const std::span<char* const> arguments(argv + 1, static_cast<std::size_t>(argc - 1));
  Chosen chosen{.arguments = {arguments.begin(), arguments.end()},
                .program = program_of(argv[0]),
                .action = {}};
  describe_app(app, chosen);
  // The library takes `--flag=` for the flag alone.
  const auto empty = std::ranges::find_if(
      arguments, [](std::string_view a) { return a.starts_with("--") && a.ends_with('='); });
  if (empty != arguments.end()) {
    return complain(exit_usage, std::string(*empty) + " an empty value says nothing");
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {
    return guarded([&] { return say(app, asked); }).code;
  } catch (const CLI::ParseError& error) {
    return complain(exit_usage, usage_message(app, error, arguments));
  }
  const Ending ending = guarded(chosen.action);
  forget_in_flight();
  if (ending.leave_now) std::_Exit(ending.code);
  return ending.code;
}

}  // namespace
}  // namespace attest

// What guarded() does not see: describing the options, or no memory for an error's own text.
int main(int argc, char** argv) {
  try {
    return attest::run_main(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "attest: %s\n", error.what());
  } catch (...) {
    std::fputs("attest: an exception of unknown type\n", stderr);
  }
  return attest::exit_internal;
}
