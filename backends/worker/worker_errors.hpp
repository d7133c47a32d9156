#pragma once

#include "backends/backend.hpp"

namespace attest {

/// The process that ran the kernel died, or lost its device; what() says how, with its last output.
class WorkerCrashed : public BackendError {
 public:
  using BackendError::BackendError;
};

/// The process gave no answer within the limit and was killed.
class WorkerHung : public BackendError {
 public:
  using BackendError::BackendError;
};

}  // namespace attest
