#pragma once

#include <exception>
#include <string>
#include <string_view>

#include "contracts/verdict.hpp"

namespace attest {

/// The file descriptor behind it went away (attest ... | head): end quietly.
class OutputClosed : public std::exception {
 public:
  const char* what() const noexcept override { return "the reader of the output closed it"; }
};

/// Writes all of `text` to a descriptor. \throws OutputClosed on EPIPE, std::system_error naming
/// `name` otherwise ("runs.jsonl: No space left on device").
void write_all(int fd, std::string_view text, std::string_view name);

/// One output stream of the program: every write is complete and checked, and it knows whether a
/// person watches.
class Console {
 public:
  Console(int fd, std::string name, bool terminal, bool colour)
      : fd_(fd), name_(std::move(name)), terminal_(terminal), colour_(colour) {}
  /// Asks the descriptor and the environment: colour on a terminal only, and not when NO_COLOR is
  /// set and not empty, nor on TERM=dumb. Source: no-color.org.
  static Console of(int fd, std::string name);
  /// Prints nothing.
  static Console silent() { return {-1, "", false, false}; }

  /// \throws as write_all
  void print(std::string_view text) const {
    if (fd_ >= 0) write_all(fd_, text, name_);
  }
  bool terminal() const { return terminal_; }
  bool colour() const { return colour_; }
  /// Columns of the terminal, 80 when unknown.
  int columns() const;

  std::string bold(std::string_view text) const { return painted("1", text); }
  std::string dim(std::string_view text) const { return painted("2", text); }
  std::string good(std::string_view text) const { return painted("32", text); }
  std::string bad(std::string_view text) const { return painted("31;1", text); }
  std::string doubtful(std::string_view text) const { return painted("33", text); }
  /// `text` in the verdict's colour.
  std::string as(Verdict verdict, std::string_view text) const;

 private:
  std::string painted(std::string_view code, std::string_view text) const;

  int fd_;
  std::string name_;
  bool terminal_;
  bool colour_;
};

}  // namespace attest
