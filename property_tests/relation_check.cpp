#include <bit>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>

#include "backends/registry.hpp"
#include "property_tests/isolated_backend.hpp"
#include "property_tests/judge.hpp"
#include "property_tests/relations.hpp"

namespace attest {
namespace {

/// Output bits of live rows by (sequence, position).
using Token = std::pair<std::int64_t, std::int64_t>;
using Rows = std::map<Token, std::vector<std::uint32_t>>;

/// The backend itself, or its sibling of the case's signature.
const Backend* backend_for(const Case& c, const Backend& backend) {
  if (c.signature == backend.capabilities().signature) return &backend;
  const BackendName own = split_backend_name(backend.name());
  return select_backends(own.implementation + "." + std::string(name(c.signature)) + "@" +
                         own.engine)
      .front();
}

Call lowered(const Case& c) {
  const auto call = call_of(c, make_slot_map(c.problem));
  if (const auto* no = std::get_if<Unsupported>(&call)) throw std::runtime_error(no->reason);
  return std::get<Call>(call);
}

RunResult launch(const RelatedRun& run, const Backend& backend) {
  const Case& c = run.c;
  const TensorSource source(c.problem, c.recipe, c.seed, c.poison);
  if (!backend.capabilities().isolate) return backend.run(lowered(c), source, run.options);
  const IsolatedBackend isolated(backend, {}, std::chrono::seconds(60));
  return isolated.run(lowered(c), source, run.options);
}

/// What else a row and head have: whether it was written, and its log-sum-exp.
void append_whole(const Output& out, std::int64_t row_and_head, std::vector<std::uint32_t>& bits) {
  const auto at = static_cast<std::size_t>(row_and_head);
  bits.push_back(out.untouched[at]);
  if (!out.lse.empty()) bits.push_back(std::bit_cast<std::uint32_t>(out.lse[at]));
}

/// `twin` says what to look at.
void collect(const RelatedRun& run, const Twin& twin, const Backend& backend, Rows& rows) {
  const RunResult result = launch(run, *backend_for(run.c, backend));
  if (result.raised) throw std::runtime_error("raised: " + *result.raised);
  if (!result.damage.empty()) throw std::runtime_error("damage: " + result.damage.front());
  const std::int64_t compared = twin.heads > 0 ? twin.heads : result.out.heads;
  std::int64_t row = 0;
  for (const Request& request : run.c.problem.requests) {
    for (std::int64_t t = 0; t < request.new_tokens; ++t, ++row) {
      if (!request.live && !twin.whole) continue;
      std::vector<std::uint32_t>& bits = rows[{request.sequence, request.committed + t}];
      for (std::int64_t h = 0; h < compared; ++h) {
        if (twin.whole) append_whole(result.out, row * result.out.heads + h, bits);
        for (std::int64_t d = 0; d < result.out.dim; ++d) {
          bits.push_back(
              std::bit_cast<std::uint32_t>(result.out.values[result.out.index(row, h, d)]));
        }
      }
    }
  }
}

Rows rows_of(const std::vector<RelatedRun>& runs, const Twin& twin, const Backend& backend) {
  Rows rows;
  for (const RelatedRun& run : runs) collect(run, twin, backend, rows);
  return rows;
}

std::string place(const Token& token) {
  return "sequence " + std::to_string(token.first) + " position " + std::to_string(token.second);
}

std::optional<std::string> first_difference(const Rows& left, const Rows& right) {
  if (left.empty()) return "no live row: nothing was compared";
  for (const auto& [token, bits] : left) {
    const auto other = right.find(token);
    if (other == right.end()) return place(token) + " is on one side only";
    for (std::size_t i = 0; i < bits.size(); ++i) {
      if (i < other->second.size() && bits[i] == other->second[i]) continue;
      return place(token) + " element " + std::to_string(i) + " differs";
    }
  }
  if (left.size() != right.size()) return "one side has more rows";
  return std::nullopt;
}

/// Both sides within their bounds of the reference.
std::optional<std::string> out_of_bound(const std::vector<RelatedRun>& runs,
                                        const Backend& backend) {
  for (const RelatedRun& run : runs) {
    JudgeOptions options;
    options.run = run.options;
    options.both_poisons = false;
    options.diagnose = false;
    options.reference_threads = 1;
    const Judgement judgement = judge(run.c, *backend_for(run.c, backend), options);
    const bool fine = judgement.verdict == Verdict::pass || judgement.verdict == Verdict::untrusted;
    if (!fine) return std::string(name(judgement.verdict)) + ": " + judgement.reason;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> broken(const Twin& twin, Holds holds, const Backend& backend) {
  if (holds == Holds::not_held) return std::nullopt;
  if (holds == Holds::exactly) {
    return first_difference(rows_of(twin.left, twin, backend), rows_of(twin.right, twin, backend));
  }
  if (auto why = out_of_bound(twin.left, backend)) return why;
  return out_of_bound(twin.right, backend);
}

}  // namespace attest
