#pragma once

#include <memory>
#include <string>

#include "backends/worker/foreign_backend.hpp"

namespace attest {

/// Whether a word of a selector is a plugin's file: it has a slash or ends in ".so".
bool names_a_plugin(std::string_view selector);

/// The plugin in `path`, as a backend. Its library is loaded in worker processes only, which are
/// `program` with the arguments "worker --plugin PATH"; empty: the program `attest` beside this
/// one.
/// \throws BackendError naming the file and what is wrong with it.
std::unique_ptr<ForeignBackend> load_plugin(const std::string& path,
                                            const std::string& program = "");

/// The worker's side: answers the requests of docs/worker_protocol.md from the stream socket
/// `socket` with the plugin in `path`, tensors in the memory behind `shared`.
/// \returns the process's exit status.
int plugin_worker_main(const std::string& path, int shared, int socket);

}  // namespace attest
