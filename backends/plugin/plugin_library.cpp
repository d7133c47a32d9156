#include "backends/plugin/plugin_library.hpp"

#include <dlfcn.h>

#include <type_traits>

namespace attest {

template <class Function>
Function* PluginLibrary::symbol(const char* name) const {
  void* const found = dlsym(handle_, name);
  if (found == nullptr) {
    throw BackendError(path_ + ": no symbol " + name +
                       "; a plugin exports it as extern \"C\" (attest_plugin.h)");
  }
  return reinterpret_cast<Function*>(found);
}

PluginLibrary::PluginLibrary(const std::string& path) : path_(path) {
  // A name without a slash would be searched for along the linker's path.
  const std::string file = path.find('/') == std::string::npos ? "./" + path : path;
  handle_ = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle_ == nullptr) {
    const char* const why = dlerror();
    throw BackendError(path_ + ": cannot be loaded: " + (why ? why : "no reason given"));
  }
  const auto abi = symbol<std::remove_pointer_t<decltype(&attest_plugin_abi)>>("attest_plugin_abi");
  if (const int version = abi(); version != ATTEST_PLUGIN_ABI) {
    throw BackendError(path_ + ": attest_plugin_abi() is " + std::to_string(version) +
                       ", this attest takes plugins of version " +
                       std::to_string(ATTEST_PLUGIN_ABI));
  }
  describe_ = symbol<std::remove_pointer_t<decltype(describe_)>>("attest_plugin_describe");
  supports_ = symbol<std::remove_pointer_t<decltype(supports_)>>("attest_plugin_supports");
  run_ = symbol<std::remove_pointer_t<decltype(run_)>>("attest_plugin_run");
}

std::string PluginLibrary::describe() const {
  const char* const text = describe_();
  if (text == nullptr) throw BackendError(path_ + ": attest_plugin_describe() gave NULL");
  return text;
}

}  // namespace attest
