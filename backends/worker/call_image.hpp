#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backends/backend.hpp"
#include "backends/worker/arguments.hpp"
#include "memory/guarded_buffer.hpp"
#include "memory/kv_pool.hpp"

namespace attest {

/// The tensors of one call laid out in one stretch of memory for another process: guard bytes
/// around every tensor, poison around and inside the pools. The harness keeps its own copy, so that
/// whatever the other process does to the stretch is found by comparison.
class CallImage {
 public:
  /// \throws std::invalid_argument for an argument that has no contents (supports() says which);
  ///         PoolUnavailable when a pool cannot be had.
  CallImage(const Call& call, const TensorSource& source, int sentinel);
  CallImage(const CallImage&) = delete;
  CallImage& operator=(const CallImage&) = delete;
  ~CallImage();

  /// Whether a call can be laid out: qq_bias has no contents, and pools past 64 MiB are sparse
  /// unless ATTEST_KV_MEMORY=dense.
  static Answer supports(const Call& call);

  const std::vector<Argument>& arguments() const { return arguments_; }
  std::size_t bytes() const { return bytes_; }
  void write(std::span<std::byte> to) const;
  /// The output, and what was changed that must not be. \pre `from` was written by write()
  void collect(std::span<const std::byte> from, RunResult& result);

 private:
  struct Part;
  class Builder;
  std::vector<Argument> arguments_;
  std::vector<Part> parts_;
  std::vector<std::int64_t> written_slots_;
  std::size_t bytes_ = 0;
  int sentinel_ = 0;
};

}  // namespace attest
