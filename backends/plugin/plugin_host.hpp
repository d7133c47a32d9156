#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "backends/worker/foreign_backend.hpp"

namespace attest {

/// Whether a word of a selector is a plugin's file: it has a slash or ends in ".so".
bool names_a_plugin(std::string_view selector);

/// One name for a plugin's file however it is spelled, from whatever folder and through whatever
/// link; what a selector cannot hold (a comma) stays as it was spelled.
std::string canonical_plugin(std::string_view path);

/// The plugin in `path`, as a backend that is selected by canonical_plugin(path). Its library is
/// loaded in worker processes only, which are `program` with the arguments "worker --plugin PATH";
/// empty: the program `attest` beside this one. A kernel with one of the names that are `taken`
/// gets a number: "mine-2.unified@cpu".
/// \throws BackendError naming the file and what is wrong with it.
std::unique_ptr<ForeignBackend> load_plugin(const std::string& path,
                                            const std::string& program = "",
                                            std::span<const std::string_view> taken = {});

/// The worker's side: answers the requests of docs/worker_protocol.md from the stream socket
/// `socket` with the plugin in `path`, tensors in the memory behind `shared`.
/// \returns the process's exit status.
int plugin_worker_main(const std::string& path, int shared, int socket);

}  // namespace attest
