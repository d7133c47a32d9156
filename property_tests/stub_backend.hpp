#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <utility>

#include "backends/registry.hpp"
#include "property_tests/case.hpp"

namespace attest {

/// How often a backend ran, on any thread. Copies with the backend that it counts.
class RunCount {
 public:
  RunCount() = default;
  RunCount(const RunCount& other) : count_(other.count_.load()) {}
  RunCount& operator=(const RunCount& other) {
    count_ = other.count_.load();
    return *this;
  }
  RunCount& operator=(int count) {
    count_ = count;
    return *this;
  }
  ~RunCount() = default;
  void operator++() const { ++count_; }
  operator int() const { return count_; }  // NOLINT(*-explicit-*): a number wherever one is read

 private:
  mutable std::atomic<int> count_{0};
};

/// For tests: the scalar unified backend with parts replaced.
class StubBackend : public Backend {
 public:
  std::string stub_name = "stub.unified@cpu";
  Capabilities stub_capabilities = inner().capabilities();
  NumericsProfile stub_profile = inner().profile();
  Answer stub_available;
  Answer stub_supports;
  /// Changes what scalar computed, or throws instead.
  std::function<void(const TensorSource&, const RunOptions&, RunResult&)> after;
  RunCount runs;

  static const Backend& inner() { return *select_backends("scalar.unified").front(); }

  std::string_view name() const override { return stub_name; }
  std::string_view says() const override { return "a stub for tests"; }
  const Capabilities& capabilities() const override { return stub_capabilities; }
  const NumericsProfile& profile() const override { return stub_profile; }
  Answer available() const override { return stub_available; }
  Answer supports(const Call&) const override { return stub_supports; }
  RunResult run(const Call& call, const TensorSource& source,
                const RunOptions& options) const override {
    ++runs;
    RunResult result = inner().run(call, source, options);
    if (after) after(source, options, result);
    return result;
  }
};

/// For tests: three requests of a verify step with uneven lengths, 8:2 heads, pages of 16.
inline Case verify_case() {
  Case c;
  Problem& p = c.problem;
  p.mode = Mode::target_verify;
  p.model.num_q_heads = 8;
  p.model.num_kv_heads = 2;
  p.model.head_dim = p.model.v_head_dim = 64;
  p.pool = {.page_size = 16, .num_pages = 40, .k = {}, .v = {}, .seed = 5, .slots = {}};
  for (const auto& [committed, tokens] : {std::pair{130, 4}, {40, 3}, {63, 1}}) {
    Request request;
    request.sequence = static_cast<std::int64_t>(p.requests.size()) + 1;
    request.committed = committed;
    request.new_tokens = tokens;
    p.requests.push_back(request);
  }
  p.num_draft_tokens = 4;
  c.seed = 3;
  c.origin = "--seed 1 --case 2";
  return c;
}

}  // namespace attest
