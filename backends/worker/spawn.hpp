#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "backends/worker/descriptor.hpp"

namespace attest {

/// A started child: a stream socket to it, and what it writes to stdout and stderr. Both
/// descriptors are non-blocking and closed in later children.
struct Child {
  pid_t pid = -1;
  Descriptor socket;
  Descriptor output;
};

/// Starts argv[0] (a path, or a name looked up in PATH) with the number of its end of the socket
/// appended as last argument. The child leads a process group of its own, reads /dev/null, inherits
/// no other descriptor, and is killed when the thread that started it ends.
/// `shared`: a descriptor that it inherits all the same; its number then stands before the
/// socket's.
/// \throws ResourceError naming the step, argv[0] and the errno; also when the exec itself fails.
Child spawn(const std::vector<std::string>& argv, int shared = -1);

}  // namespace attest
