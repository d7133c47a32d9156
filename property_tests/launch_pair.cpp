#include "property_tests/launch_pair.hpp"

#include <bit>
#include <limits>
#include <new>
#include <stdexcept>
#include <system_error>

#include "memory/pool_memory.hpp"
#include "property_tests/isolated_backend.hpp"

namespace attest {
namespace {

/// One launch; what the kernel or its machine does becomes a verdict.
Launched launch_once(const Call& call, const TensorSource& source, const Backend& backend,
                     const RunOptions& options) {
  Launched launched;
  try {
    launched.result = backend.run(call, source, options);
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::system_error&) {
    throw;  // the harness's own machine: address space, files
  } catch (const PoolUnavailable& error) {
    launched.ended = Verdict::unavailable;
    launched.reason = error.what();
    return launched;
  } catch (const WorkerHung& error) {
    launched.ended = Verdict::hung;
    launched.reason = error.what();
    return launched;
  } catch (const std::exception& error) {
    launched.ended = Verdict::crashed;
    launched.reason = error.what();
    return launched;
  }
  if (launched.result->raised) {
    launched.ended = Verdict::mismatch;
    launched.reason = "kernel raised: " + *launched.result->raised;
  }
  return launched;
}

OracleResult damage_of(const RunResult& result) {
  OracleResult damage{.oracle = "damage", .passed = result.damage.empty(), .compared = 1};
  damage.failures = static_cast<std::int64_t>(result.damage.size());
  if (!damage.passed) damage.detail = result.damage.front();
  return damage;
}

std::string place(std::int64_t row, std::int64_t head, std::int64_t d) {
  return "row " + std::to_string(row) + " head " + std::to_string(head) + " element " +
         std::to_string(d);
}

/// Compares the rows that have a value, or must not be touched, bit for bit.
OracleResult poison_agreement(const Attended& meaning, const Output& first, const Output& second) {
  OracleResult poison{.oracle = "poison", .passed = true};
  if (first.values.size() != second.values.size() || first.untouched != second.untouched) {
    poison.passed = false;
    poison.failures = poison.compared = 1;
    poison.detail = "the two runs wrote different places of the output";
    return poison;
  }
  for (std::int64_t row = 0; row < first.rows; ++row) {
    const bool known = row < static_cast<std::int64_t>(meaning.rows.size());
    if (!known || meaning.rows[static_cast<std::size_t>(row)].expect != RowExpectation::value)
      continue;
    for (std::int64_t head = 0; head < first.heads; ++head) {
      // What no run wrote holds each run's own sentinel: the rows oracle says so.
      if (first.untouched[static_cast<std::size_t>(row * first.heads + head)] != 0) continue;
      for (std::int64_t d = 0; d < first.dim; ++d) {
        const std::size_t at = first.index(row, head, d);
        ++poison.compared;
        const float a = first.values[at];
        const float b = second.values[at];
        if (std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b)) continue;
        if (poison.failures++ > 0) continue;
        poison.passed = false;
        poison.worst = std::numeric_limits<double>::infinity();
        poison.row = row;
        poison.head = head;
        poison.element = d;
        poison.detail = place(row, head, d) + ": " + std::to_string(a) + ", and " +
                        std::to_string(b) + " once the bytes that must not be read changed";
      }
    }
  }
  return poison;
}

}  // namespace

const RunResult& Launched::finished() const {
  if (!result) throw std::logic_error("a launch that was not ended has no result");
  return *result;
}

Launched launch(const Case& c, const Call& call, const TensorSource& source,
                const Attended& meaning, const Backend& backend, const JudgeOptions& options) {
  Launched first = launch_once(call, source, backend, options.run);
  if (first.ended) return first;
  first.agreement.push_back(damage_of(first.finished()));
  if (!options.both_poisons) return first;

  PoisonPlan other_poison = c.poison;
  other_poison.poison = c.poison.poison == Poison::nan ? Poison::loud : Poison::nan;
  RunOptions other_options = options.run;
  other_options.sentinel = 1 - options.run.sentinel;
  const TensorSource other_source(c.problem, c.recipe, c.seed, other_poison);
  const Launched second = launch_once(call, other_source, backend, other_options);
  if (second.ended) {
    first.ended = second.ended;
    first.reason = "in the second launch, with " + std::string(name(other_poison.poison)) +
                   " poison: " + second.reason;
    return first;
  }
  if (first.agreement.front().passed) first.agreement.front() = damage_of(second.finished());
  first.agreement.push_back(poison_agreement(meaning, first.finished().out, second.finished().out));
  return first;
}

}  // namespace attest
