#include "property_tests/report/machine.hpp"

#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string_view>

#include "property_tests/report/numbers.hpp"

namespace attest {
namespace {

constexpr std::array interesting_flags = {"avx",         "avx2",        "fma",      "f16c",
                                          "avx512f",     "avx512bw",    "avx512vl", "avx512_bf16",
                                          "avx512_fp16", "avx512_vnni", "avx_vnni", "amx_tile",
                                          "amx_bf16",    "amx_int8",    "amx_fp16"};

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

/// Value of "key<tabs>: value" or "KEY=value" in a file of such lines; the first one.
std::string value_in(const std::string& path, std::string_view key, char separator) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(key, 0) != 0) continue;
    const std::size_t at = line.find(separator);
    if (at == std::string::npos) continue;
    const std::size_t begin = line.find_first_not_of(" \t\"", at + 1);
    if (begin == std::string::npos) return "";
    return line.substr(begin, line.find_last_not_of(" \t\"") + 1 - begin);
  }
  return "";
}

std::string system_in_words() {
  std::string text = value_in("/etc/os-release", "PRETTY_NAME", '=');
  utsname name{};
  if (::uname(&name) != 0) return text;
  if (!text.empty()) text += ", ";
  return text + name.sysname + " " + name.release + " " + name.machine;
}

std::vector<std::string> flags_that_matter() {
  std::istringstream words(value_in("/proc/cpuinfo", "flags", ':'));
  std::vector<std::string> all;
  for (std::string word; words >> word;) all.push_back(word);
  std::vector<std::string> kept;
  for (const char* flag : interesting_flags) {
    if (std::find(all.begin(), all.end(), flag) != all.end()) kept.emplace_back(flag);
  }
  return kept;
}

std::int64_t usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof(set), &set) != 0) return ::sysconf(_SC_NPROCESSORS_ONLN);
  return CPU_COUNT(&set);
}

std::int64_t usable_memory() {
  const std::int64_t machine = static_cast<std::int64_t>(::sysconf(_SC_PHYS_PAGES)) *
                               static_cast<std::int64_t>(::sysconf(_SC_PAGESIZE));
  std::istringstream limit(first_line("/sys/fs/cgroup/memory.max"));
  std::int64_t bytes = 0;
  return limit >> bytes && bytes > 0 ? std::min(machine, bytes) : machine;
}

std::string cpu_quota() {
  std::istringstream file(first_line("/sys/fs/cgroup/cpu.max"));
  double quota = 0;
  double period = 0;
  if (!(file >> quota >> period) || period <= 0) return "";
  std::ostringstream words;
  words << quota / period << " cores' worth of time";
  return words.str();
}

std::vector<std::string> accelerators() {
  namespace fs = std::filesystem;
  std::vector<std::string> found;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator("/proc/driver/nvidia/gpus", ignored)) {
    const std::string model = value_in((entry.path() / "information").string(), "Model", ':');
    found.push_back(model.empty() ? "an NVIDIA device" : model);
  }
  if (fs::exists("/dev/kfd", ignored)) found.emplace_back("an AMD compute device (/dev/kfd)");
  return found;
}

}  // namespace

Machine this_machine() {
  Machine machine;
  machine.system = system_in_words();
  machine.cpu = value_in("/proc/cpuinfo", "model name", ':');
  machine.flags = flags_that_matter();
  machine.cores = usable_cores();
  machine.cores_online = ::sysconf(_SC_NPROCESSORS_ONLN);
  machine.memory_bytes = usable_memory();
  machine.sched_limit = cpu_quota();
  machine.devices = accelerators();
  return machine;
}

std::string machine_json(const Machine& machine) {
  const nlohmann::ordered_json json = {{"system", machine.system},
                                       {"cpu", machine.cpu},
                                       {"flags", machine.flags},
                                       {"cores", machine.cores},
                                       {"cores_online", machine.cores_online},
                                       {"cpu_quota", machine.sched_limit},
                                       {"memory_bytes", machine.memory_bytes},
                                       {"devices", machine.devices}};
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string machine_text(const Machine& machine) {
  const auto joined = [](const std::vector<std::string>& words) {
    std::string text;
    for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
    return text.empty() ? "none" : text;
  };
  std::string text = "  system   " + machine.system + "\n  cpu      " + machine.cpu +
                     "\n  flags    " + joined(machine.flags) + "\n  cores    " +
                     std::to_string(machine.cores) + " usable of " +
                     std::to_string(machine.cores_online);
  if (!machine.sched_limit.empty()) text += ", limited to " + machine.sched_limit;
  text += "\n  memory   " + bytes_in_words(static_cast<double>(machine.memory_bytes)) + "\n";
  std::string devices;
  for (const std::string& device : machine.devices)
    devices += (devices.empty() ? "" : ", ") + device;
  return text + "  devices  " + (devices.empty() ? "none" : devices) + "\n";
}

}  // namespace attest
