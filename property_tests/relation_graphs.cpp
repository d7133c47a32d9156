#include <string>

#include "property_tests/relation_twins.hpp"

namespace attest {
namespace {

/// The call a framework replays, launched without a graph and by a replay of one. Bit for bit: the
/// call of a replay says the same max_seqlen_k either way, so the same launches run.
MaybeTwin eager_and_replayed(const Case& c, const Backend& backend, const char* graph) {
  if (!backend.capabilities().graphs) return std::nullopt;
  Case replayed = c;
  replayed.problem.path = Path::replay;
  if (!lowers(replayed)) return std::nullopt;
  return Twin{.left = {{replayed, {}}}, .right = {{replayed, {.graph = graph}}}, .whole = true};
}

}  // namespace

MaybeTwin graph_replays_longer(const Case& c, const Backend& backend) {
  return eager_and_replayed(c, backend, "short");
}

MaybeTwin graph_replays_shorter(const Case& c, const Backend& backend) {
  return eager_and_replayed(c, backend, "long");
}

MaybeTwin graph_replays_padded(const Case& c, const Backend& backend) {
  const auto padded = with_padded_request(c);
  return padded ? eager_and_replayed(*padded, backend, "short") : std::nullopt;
}

MaybeTwin graph_after_eager(const Case& c, const Backend& backend) {
  return eager_and_replayed(c, backend, "short,eager");
}

MaybeTwin graph_lengths_inside(const Case& c, const Backend& backend) {
  if (backend.capabilities().signature != Signature::unified) return std::nullopt;
  return eager_and_replayed(c, backend, "short,inside");
}

}  // namespace attest
