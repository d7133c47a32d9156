#include <algorithm>
#include <utility>

#include "property_tests/relation_twins.hpp"

namespace attest {
namespace {

bool branches(const Problem& p) { return p.topk > 1 && p.mode == Mode::draft_decode; }

/// What verification computes for a draft is what decoding it would have: the same tokens one call
/// each, of signature `signature`.
MaybeTwin one_by_one(const Case& c, Signature signature, bool windowed, int splits) {
  const Problem& p = c.problem;
  const bool tree = std::any_of(p.requests.begin(), p.requests.end(),
                                [](const Request& r) { return !r.tree_parent.empty(); });
  if (tree || branches(p) || p.mode == Mode::idle) return std::nullopt;
  if (windowed != p.model.window.has_value()) return std::nullopt;
  Twin twin{.left = {{plain(c), {}}}, .right = {}};
  for (const Request& request : p.requests) {
    for (std::int64_t t = 0; request.live && t < request.new_tokens; ++t) {
      Case step = plain(c);
      Request one = request;
      one.committed += t;
      one.new_tokens = 1;
      step.problem.requests = {one};
      step.problem.mode = Mode::decode;
      step.problem.num_draft_tokens.reset();
      step.problem.topk = 1;
      step.signature = signature;
      if (!lowers(step)) return std::nullopt;
      twin.right.push_back({step, {.kv_splits = splits}});
    }
  }
  if (twin.right.empty()) return std::nullopt;
  return twin;
}

/// extend takes no decode step, and decode nothing else.
bool takes_decode_steps(const Backend& backend) {
  const Signature signature = backend.capabilities().signature;
  return signature == Signature::unified || signature == Signature::mla_decode;
}

}  // namespace

MaybeTwin decode_steps(const Case& c, const Backend& backend) {
  if (!takes_decode_steps(backend)) return std::nullopt;
  return one_by_one(c, backend.capabilities().signature, false, 0);
}
MaybeTwin decode_steps_windowed(const Case& c, const Backend& backend) {
  if (!takes_decode_steps(backend)) return std::nullopt;
  return one_by_one(c, backend.capabilities().signature, true, 0);
}
MaybeTwin verify_equals_decode(const Case& c, const Backend& backend) {
  if (backend.capabilities().signature != Signature::extend) return std::nullopt;
  return one_by_one(c, Signature::decode, false, 1);
}
MaybeTwin verify_equals_decode_windowed(const Case& c, const Backend& backend) {
  if (backend.capabilities().signature != Signature::extend) return std::nullopt;
  return one_by_one(c, Signature::decode, true, 1);
}
MaybeTwin verify_equals_split_decode(const Case& c, const Backend& backend) {
  if (backend.capabilities().signature != Signature::extend) return std::nullopt;
  return one_by_one(c, Signature::decode, false, 3);
}

/// max_seqlen_k sizes a launch and means no key.
MaybeTwin larger_max_seqlen_k(const Case& c, const Backend&) {
  if (c.signature != Signature::unified || !lowers(c)) return std::nullopt;
  Case larger = c;
  Call call = std::get<Call>(call_of(c, make_slot_map(c.problem)));
  std::get<UnifiedCall>(call).max_seqlen_k *= 16;
  larger.call = std::move(call);
  return Twin{.left = {{c, {}}}, .right = {{std::move(larger), {}}}};
}

}  // namespace attest
