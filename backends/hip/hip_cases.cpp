#include "backends/hip/hip_cases.hpp"

#include <cmath>
#include <cstring>
#include <stdexcept>

namespace attest::hip {
namespace {

ScalarCase with_shape(std::int64_t dim, std::int64_t v_dim, std::int64_t page, std::int64_t group) {
  ScalarCase c = hip_case(Signature::unified, "Plain");
  c.name = "D" + std::to_string(dim) + "V" + std::to_string(v_dim) + "Page" + std::to_string(page) +
           "Group" + std::to_string(group);
  Problem& p = c.problem;
  p.model.head_dim = dim;
  p.model.v_head_dim = v_dim;
  p.model.num_q_heads = 2 * group;
  p.pool.page_size = page;
  p.pool.num_pages = 1024 / page + 8;
  return c;
}

std::vector<ScalarCase> shapes() {
  std::vector<ScalarCase> list = {
      with_shape(64, 64, 1, 4),     with_shape(80, 80, 16, 3),   with_shape(96, 96, 48, 1),
      with_shape(128, 128, 64, 16), with_shape(128, 64, 128, 5), with_shape(192, 128, 16, 8),
      with_shape(192, 192, 64, 2),  with_shape(256, 256, 16, 6), with_shape(64, 256, 1, 7),
      with_shape(72, 40, 16, 12),   with_shape(67, 33, 16, 4)};
  ScalarCase narrow_window = with_shape(64, 64, 16, 4);
  narrow_window.name = "WindowOfTwo";
  narrow_window.problem.model.window = 2;
  list.push_back(narrow_window);
  ScalarCase prefill = with_shape(64, 64, 16, 4);
  prefill.name = "Prefill";
  prefill.problem.mode = Mode::extend;
  prefill.problem.num_draft_tokens.reset();
  prefill.problem.requests[0].new_tokens = 77;
  prefill.problem.model.window = 33;
  list.push_back(prefill);
  ScalarCase idle = with_shape(64, 64, 16, 4);
  idle.name = "RequestWithoutNewTokens";
  idle.problem.mode = Mode::mixed;
  idle.problem.num_draft_tokens.reset();
  idle.problem.requests[1].new_tokens = 0;
  list.push_back(idle);
  return list;
}

}  // namespace

std::vector<ScalarCase> hip_cases() {
  std::vector<ScalarCase> list;
  for (const ScalarCase& c : scalar_cases()) {
    if (c.signature == Signature::unified || c.signature == Signature::mla_decode) {
      list.push_back(c);
    }
  }
  for (ScalarCase& c : shapes()) list.push_back(std::move(c));
  return list;
}

ScalarCase hip_case(Signature signature, std::string_view name) {
  for (const ScalarCase& c : scalar_cases()) {
    if (c.signature == signature && c.name == name) return c;
  }
  throw std::logic_error("no case " + std::string(name));
}

const Backend& host_backend(Signature signature, int wave) {
  static const HipBackend backends[] = {
      {"hip", Signature::unified, host_engine(32)},
      {"hip", Signature::unified, host_engine(64)},
      {"hip", Signature::mla_decode, host_engine(32)},
      {"hip", Signature::mla_decode, host_engine(64)},
  };
  return backends[(signature == Signature::unified ? 0 : 2) + (wave == 64 ? 1 : 0)];
}

std::string difference(const RunResult& got, const NaiveOutput& expected, const Model& model) {
  if (got.raised) return *got.raised;
  if (got.out.values.size() != expected.out.size()) return "another number of elements";
  const Dtype p_dtype = is_fp8(model.q_dtype) ? Dtype::bf16 : model.q_dtype;
  const double relative =
      1.2 * unit_roundoff(p_dtype) + 1.2 * unit_roundoff(model.out_dtype) + 1e-5;
  double worst = 0;
  for (std::size_t i = 0; i < expected.out.size(); ++i) {
    const double bound = relative * (expected.abs_v[i] + std::fabs(expected.out[i])) + 1e-30;
    const double error = std::fabs(static_cast<double>(got.out.values[i]) - expected.out[i]);
    worst = std::max(worst, error / bound);
    if (error <= bound) continue;
    return "element " + std::to_string(i) + ": got " + std::to_string(got.out.values[i]) +
           ", expected " + std::to_string(expected.out[i]);
  }
  if (worst == 0) return "bit-equal to double: nothing was rounded, nothing was compared";
  if (got.out.lse.size() != expected.lse.size()) return "another number of log-sum-exps";
  for (std::size_t i = 0; i < expected.lse.size(); ++i) {
    const double error = std::fabs(static_cast<double>(got.out.lse[i]) - expected.lse[i]);
    if (error <= 2e-5 * (1 + std::fabs(expected.lse[i]))) continue;
    return "lse " + std::to_string(i) + ": got " + std::to_string(got.out.lse[i]) + ", expected " +
           std::to_string(expected.lse[i]);
  }
  return "";
}

bool same_bits(const RunResult& a, const RunResult& b) {
  const auto same = [](const std::vector<float>& x, const std::vector<float>& y) {
    return x.size() == y.size() && std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) == 0;
  };
  return same(a.out.values, b.out.values) && same(a.out.lse, b.out.lse) &&
         a.out.untouched == b.out.untouched;
}

}  // namespace attest::hip
