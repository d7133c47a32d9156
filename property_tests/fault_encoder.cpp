#include <algorithm>

#include "property_tests/fault_edits.hpp"

namespace attest {
namespace {

bool has_encoder(const Problem& problem) {
  return std::any_of(problem.requests.begin(), problem.requests.end(),
                     [](const Request& r) { return r.live && r.encoder_tokens > 0; });
}

}  // namespace

bool encoder_lens_missing(const Problem& problem, const SlotMap&, Call& call) {
  if (!has_encoder(problem)) return false;
  if (auto* c = std::get_if<ExtendCall>(&call)) c->encoder_lens.reset();
  if (auto* c = std::get_if<DecodeCall>(&call)) c->encoder_lens.reset();
  return true;
}

/// The window is as long as the longest request, so a kernel that honours both computes the truth.
bool window_beside_an_encoder(const Problem& problem, const SlotMap&, Call& call) {
  auto* const c = std::get_if<DecodeCall>(&call);
  if (c == nullptr || c->is_cross_attn || !has_encoder(problem)) return false;
  c->sliding_window_size = problem.max_kv_len();
  return true;
}

bool output_transposed(const Problem&, const SlotMap&, Call& call) {
  auto* const c = std::get_if<DecodeCall>(&call);
  if (c == nullptr || c->output.size(0) < 2 || c->output.size(1) < 2) return false;
  const std::int64_t dim = c->output.size(2);
  c->output.strides = {dim, c->output.size(0) * dim, 1};
  return true;
}

}  // namespace attest
