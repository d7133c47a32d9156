#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

namespace attest {

/// What one run of a program left, for tests of the built binary.
struct Finished {
  int code = -1;         ///< exit code, or 128 + the signal that ended it
  std::string out, err;  ///< standard output and standard error
};

/// A program that runs with pipes on its outputs.
class Subprocess {
 public:
  /// argv[0] is a path. `environment` is added to this process's.
  explicit Subprocess(std::vector<std::string> argv,
                      const std::map<std::string, std::string>& environment = {},
                      const std::string& input = "");
  ~Subprocess();
  Subprocess(const Subprocess&) = delete;
  Subprocess& operator=(const Subprocess&) = delete;

  void send(int signal) const;
  /// Reads both outputs to their ends and waits. Kills it after a minute.
  Finished finish();

 private:
  pid_t pid_ = -1;
  int out_ = -1;
  int err_ = -1;
};

/// attest with these arguments, run to its end in the source folder.
Finished attest_cli(const std::vector<std::string>& arguments,
                    const std::map<std::string, std::string>& environment = {},
                    const std::string& input = "");

}  // namespace attest
