#include "backends/worker/python_workers.hpp"

#include <cstdlib>
#include <deque>
#include <filesystem>
#include <system_error>
#include <vector>

namespace attest {
namespace {

namespace fs = std::filesystem;

std::string environment(const char* name, const char* otherwise) {
  const char* const value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : otherwise;
}

/// The script, or nothing. A build tree has its programs two folders below the source, a prefix one
/// below itself.
std::string find_script() {
  if (std::string named = environment("ATTEST_WORKER", ""); !named.empty()) return named;
  std::error_code error;
  const fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (const fs::path& root : {folder / ".." / "..", folder / ".." / "share" / "attest"}) {
    const fs::path script = root / "scripts" / "attest_worker.py";
    if (fs::exists(script, error)) return script.lexically_normal().string();
  }
  return "";
}

struct Owned {
  std::vector<ForeignBackend> list;
  PythonWorkers workers;
};

Owned ask() {
  Owned owned;
  const std::string script = find_script();
  if (script.empty()) {
    owned.workers.why_none =
        "scripts/attest_worker.py is not beside this program; ATTEST_WORKER names it";
    return owned;
  }
  const std::vector<std::string> argv = {environment("ATTEST_PYTHON", "python3"), script};
  try {
    for (Description& kernel : describe_kernels({argv, "attest_worker.py", ""})) {
      std::vector<std::string> own = argv;
      own.push_back(kernel.name);
      owned.list.emplace_back(WorkerCommand{own, "attest_worker.py", ""}, std::move(kernel));
    }
  } catch (const std::exception& error) {
    owned.list.clear();
    owned.workers.why_none = error.what();
  }
  return owned;
}

}  // namespace

const PythonWorkers& python_workers() {
  static const Owned owned = ask();
  static const PythonWorkers workers{owned.list, owned.workers.why_none};
  return workers;
}

}  // namespace attest
