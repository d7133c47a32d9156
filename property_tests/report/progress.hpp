#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "property_tests/report/console.hpp"

namespace attest {

/// Says how far a run is: one line rewritten in place on a terminal (at most ten times a second,
/// cut to the terminal's width: a wrapped line could not be taken back), a plain line every few
/// seconds elsewhere. Writes nothing for what ends before its first turn.
class Progress {
 public:
  using Clock = std::chrono::steady_clock;
  /// `every` is the pause between plain lines.
  explicit Progress(Console console,
                    std::chrono::milliseconds every = std::chrono::milliseconds{5000})
      : console_(std::move(console)), every_(every) {}

  /// A new part of `total` cases begins.
  void begin(std::string what, std::int64_t total, Clock::time_point now = Clock::now());
  void advance(std::int64_t done, std::int64_t failed, Clock::time_point now = Clock::now());
  /// Takes the live line off the terminal, so that something else can be printed.
  void clear();
  /// The part is over: clears, and in a pipe says so when lines were written before.
  void end(Clock::time_point now = Clock::now());

 private:
  std::string line(Clock::time_point now) const;
  /// Of at most `columns`: goes without the rate, then without the time left, then shortens the
  /// name, and only then the counts.
  std::string line_within(std::size_t columns, Clock::time_point now) const;
  struct Parts {
    std::string what, counts, failed, rate, left;
  };
  Parts parts(Clock::time_point now) const;

  Console console_;
  std::chrono::milliseconds every_;
  std::string what_;
  std::int64_t total_ = 0, done_ = 0, failed_ = 0;
  Clock::time_point start_{}, last_{};
  bool live_ = false;     ///< a line stands on the terminal
  bool written_ = false;  ///< of this part, something was written
};

}  // namespace attest
