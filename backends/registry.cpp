#include "backends/registry.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <set>
#include <utility>

#include "backends/amx/amx_backend.hpp"
#include "backends/faulty/amx_faults.hpp"
#include "backends/faulty/faults.hpp"
#include "backends/faulty/wrap_faults.hpp"
#include "backends/hip/hip_backend.hpp"
#include "backends/hip/planted_faults.hpp"
#include "backends/plugin/plugin_host.hpp"
#include "backends/scalar/scalar_backend.hpp"
#include "backends/worker/python_workers.hpp"

namespace attest {
namespace {

constexpr std::string_view fault_prefix = "faulty-";

/// Every signature the AMX kernels take, on every engine.
std::deque<amx::AmxBackend> amx_backends() {
  std::deque<amx::AmxBackend> backends;
  for (const auto engine : {amx::Engine::native, amx::Engine::patch, amx::Engine::trap}) {
    for (const Signature signature : {Signature::extend, Signature::decode}) {
      backends.emplace_back(signature, engine);
    }
  }
  return backends;
}

/// Every signature the HIP kernels take, on every engine; `available()` says which ones run.
std::deque<hip::HipBackend> hip_backends() {
  std::deque<hip::HipBackend> backends;
  const std::shared_ptr<const hip::Engine> engines[] = {
      hip::host_engine(32), hip::device_engine("cuda"), hip::device_engine("rocm"),
      hip::device_engine("rocjitsu")};
  for (const auto& engine : engines) {
    for (const Signature signature : {Signature::unified, Signature::mla_decode}) {
      backends.emplace_back("hip", signature, engine);
    }
  }
  return backends;
}

std::vector<const Backend*> list_of_all() {
  static const ScalarBackend unified("scalar", Signature::unified,
                                     "plain float32 loops, the stand-in for a production kernel");
  static const ScalarBackend extend("scalar", Signature::extend,
                                    "the same behind SGLang's CPU extend call");
  static const ScalarBackend decode("scalar", Signature::decode,
                                    "the same behind SGLang's CPU decode call");
  static const ScalarBackend mla_decode("scalar", Signature::mla_decode,
                                        "the same behind AITER's MLA decode call");
  static const ScalarBackend batch_prefill("scalar", Signature::batch_prefill,
                                           "the same behind AITER's batch prefill call");
  static const ScalarBackend paged_ragged("scalar", Signature::paged_ragged,
                                          "the same behind AITER's ragged paged decode call");
  static const ScalarBackend legacy_extend("scalar", Signature::legacy_extend,
                                           "the same behind SGLang's Triton extend call");
  static const ScalarBackend vllm_cpu("scalar", Signature::vllm_cpu,
                                      "the same behind vLLM's CPU attention call");
  std::vector<const Backend*> list = {&unified,       &extend,       &decode,        &mla_decode,
                                      &batch_prefill, &paged_ragged, &legacy_extend, &vllm_cpu};
  // Built on first use, like the others: their profiles are read then.
  static const std::deque<amx::AmxBackend> on_tiles = amx_backends();
  for (const amx::AmxBackend& backend : on_tiles) list.push_back(&backend);
  static const std::deque<hip::HipBackend> on_hip = hip_backends();
  for (const hip::HipBackend& backend : on_hip) list.push_back(&backend);
  for (const ScalarBackend& faulty : faulty_backends()) list.push_back(&faulty);
  for (const Backend* faulty : faulty_amx_backends()) list.push_back(faulty);
  for (const Backend* wraps : wrap_fault_backends()) list.push_back(wraps);
  static const auto faulty_on_hip = hip::faulty_hip_backends();
  for (const auto& faulty : faulty_on_hip) list.push_back(faulty.get());
  return list;
}

bool runs_only_when_named(const Backend* backend) { return !backend->only_when_named().empty(); }

/// "hip@rocm": every signature of one implementation on one engine.
bool names_the_engine(std::string_view part, std::string_view name) {
  const std::size_t at = part.find('@');
  if (at == std::string_view::npos || part.find('.') < at) return false;
  return name.starts_with(std::string(part.substr(0, at)) + ".") && name.ends_with(part.substr(at));
}

/// Whether `prefix` is `name` or ends where a component of it ends.
bool names(std::string_view prefix, std::string_view name) {
  if (names_the_engine(prefix, name)) return true;
  if (prefix.empty() || !name.starts_with(prefix)) return false;
  if (name.size() == prefix.size()) return true;
  constexpr std::string_view ends = ".-@";
  return ends.find(prefix.back()) != std::string_view::npos ||
         ends.find(name[prefix.size()]) != std::string_view::npos;
}

/// Whether backends of this program answer to every part: then nobody needs to ask Python.
bool all_are_own(std::string_view selector) {
  const auto own = all_backends();
  for (const std::string_view part : split_at_commas(selector)) {
    if (part.empty() || names_a_plugin(part)) continue;
    if (std::none_of(own.begin(), own.end(),
                     [&](const Backend* b) { return names(part, b->name()); }))
      return false;
  }
  return true;
}

/// The plugin in a file, loaded once however its path is spelled.
const Backend& plugin_of(const std::string& path) {
  static std::mutex mutex;
  static std::map<std::string, std::unique_ptr<ForeignBackend>> loaded;
  const std::lock_guard lock(mutex);
  std::vector<std::string_view> taken;
  for (const Backend* own : all_backends()) taken.push_back(own->name());
  for (const auto& [file, plugin] : loaded) {
    if (plugin) taken.push_back(plugin->name());
  }
  std::unique_ptr<ForeignBackend>& backend = loaded[canonical_plugin(path)];
  try {
    if (!backend) backend = load_plugin(path, "", taken);
  } catch (const BackendError& error) {
    throw std::invalid_argument(error.what());
  }
  return *backend;
}

/// Levenshtein distance.
std::size_t edits(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

/// The most similar things a person may have meant.
std::vector<std::string> near_names(std::string_view wanted, std::span<const Backend* const> from) {
  std::vector<std::string_view> names;
  names.reserve(from.size());
  for (const Backend* backend : from) names.push_back(backend->name());
  std::vector<std::string> candidates = names_to_mean(names);
  std::sort(candidates.begin(), candidates.end(), [&](const auto& a, const auto& b) {
    return std::pair(edits(wanted, a), a) < std::pair(edits(wanted, b), b);
  });
  if (candidates.size() > 3) candidates.resize(3);
  return candidates;
}

[[noreturn]] void refuse_selector(std::string_view part, std::span<const Backend* const> from) {
  if (part.empty())
    throw std::invalid_argument("the selector has an empty part: \"\" names no backend");
  std::string text = "no backend is named \"" + std::string(part) + "\"";
  const std::vector<std::string> near = near_names(part, from);
  for (std::size_t i = 0; i < near.size(); ++i) {
    text += (i == 0 ? "; near: " : ", ") + near[i];
  }
  if (from.data() == known_backends().data() && !python_workers().why_none.empty()) {
    text += "; kernels in Python are not listed: " + python_workers().why_none;
  }
  throw std::invalid_argument(text);
}

}  // namespace

std::span<const Backend* const> all_backends() {
  static const std::vector<const Backend*> list = list_of_all();
  return list;
}

std::vector<std::string> names_to_mean(std::span<const std::string_view> backends) {
  std::set<std::string> names;
  for (const std::string_view name : backends) {
    for (const std::size_t end : {name.find('.'), name.find('@'), name.size()}) {
      names.emplace(name.substr(0, end));
    }
  }
  return {names.begin(), names.end()};
}

std::vector<std::string_view> split_at_commas(std::string_view text) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t comma = text.find(',');
    std::string_view part = text.substr(0, comma);
    while (!part.empty() && part.front() == ' ') part.remove_prefix(1);
    while (!part.empty() && part.back() == ' ') part.remove_suffix(1);
    parts.push_back(part);
    if (comma == std::string_view::npos) return parts;
    text.remove_prefix(comma + 1);
  }
}

std::span<const Backend* const> known_backends() {
  static const std::vector<const Backend*> list = [] {
    const auto own = all_backends();
    std::vector<const Backend*> known(own.begin(), own.end());
    for (const ForeignBackend& backend : python_workers().backends) known.push_back(&backend);
    return known;
  }();
  return list;
}

bool is_deliberate_fault(const Backend& backend) {
  return backend.name().starts_with(fault_prefix);
}

std::vector<const Backend*> select_backends(std::string_view selector) {
  const bool needs_python = !selector.empty() && !all_are_own(selector);
  return select_backends(selector, needs_python ? known_backends() : all_backends());
}

std::vector<const Backend*> select_backends(std::string_view selector,
                                            std::span<const Backend* const> from) {
  std::vector<const Backend*> selected;
  if (selector.empty()) {
    std::copy_if(from.begin(), from.end(), std::back_inserter(selected),
                 [](const Backend* backend) { return !is_deliberate_fault(*backend); });
    return selected;
  }
  for (const std::string_view part : split_at_commas(selector)) {
    if (names_a_plugin(part)) {
      const Backend* const plugin = &plugin_of(std::string(part));
      if (std::ranges::find(selected, plugin) == selected.end()) selected.push_back(plugin);
      continue;
    }
    bool any = false;
    for (const Backend* backend : from) {
      if (!names(part, backend->name())) continue;
      any = true;
      const bool known = std::find(selected.begin(), selected.end(), backend) != selected.end();
      if (!known) selected.push_back(backend);
    }
    if (!any) refuse_selector(part, from);
  }
  return selected;
}

std::vector<const Backend*> backends_to_run(std::string_view selector) {
  if (selector.empty()) {
    std::vector<const Backend*> honest = select_backends("");
    std::erase_if(honest, runs_only_when_named);
    return honest;
  }
  std::vector<const Backend*> selected;
  for (const std::string_view part : split_at_commas(selector)) {
    // An empty part must not stand for the default selection.
    if (part.empty()) refuse_selector(part, all_backends());
    for (const Backend* backend : select_backends(part)) {
      const bool named = part.find('@') != std::string_view::npos;
      if (!named && runs_only_when_named(backend)) continue;
      const bool known = std::find(selected.begin(), selected.end(), backend) != selected.end();
      if (!known) selected.push_back(backend);
    }
  }
  return selected;
}

}  // namespace attest
