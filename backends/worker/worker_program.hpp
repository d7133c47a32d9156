#pragma once

#include <string>
#include <vector>

namespace attest {

/// The program `attest` that lies beside this one, or is it, with the argument "worker": test
/// programs and embedders are not workers, and starting them as such would start them again.
std::vector<std::string> worker_program();

}  // namespace attest
