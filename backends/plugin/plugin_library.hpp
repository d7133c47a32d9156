#pragma once

#include <string>

#include "backends/backend.hpp"
#include "backends/plugin/attest_plugin.h"

namespace attest {

/// A loaded plugin. Only worker processes load one: what its constructors do is theirs to bear.
class PluginLibrary {
 public:
  /// \throws BackendError naming the file and what is wrong: it cannot be loaded, a symbol is
  ///         missing, its version is another one.
  explicit PluginLibrary(const std::string& path);

  /// What attest_plugin_describe() gave. \throws BackendError for NULL
  std::string describe() const;
  int supports(const attest_call& call, char* why, std::size_t size) const {
    return supports_(&call, why, size);
  }
  int run(const attest_call& call, char* why, std::size_t size) const {
    return run_(&call, why, size);
  }
  const std::string& path() const { return path_; }

 private:
  template <class Function>
  Function* symbol(const char* name) const;

  std::string path_;
  void* handle_ = nullptr;  ///< never closed: the process ends with it
  decltype(&attest_plugin_describe) describe_ = nullptr;
  decltype(&attest_plugin_supports) supports_ = nullptr;
  decltype(&attest_plugin_run) run_ = nullptr;
};

}  // namespace attest
