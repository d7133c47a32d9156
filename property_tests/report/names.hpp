#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace attest {

/// A word that some report prints as a name, apart from the rules of a call and the faults, which
/// explain.hpp says more about.
struct KnownName {
  std::string_view kind;    ///< "oracle", "hypothesis", "feature", ...
  std::string name;         ///< as it is printed
  std::string says;         ///< one sentence or clause
  std::string look = {};    ///< of a diagnosis: what of a kernel usually does it
  std::string source = {};  ///< a public thread, or where docs/ says more; may be empty
};

/// Step rules, oracles, null oracles, hypotheses and other words of the diagnosis, features,
/// relations, recipes, verdicts, severities, outcomes, regions of poison, counters, signatures,
/// kernel faults and backends: every list that a report takes names from, in this order.
const std::vector<KnownName>& known_names();

/// Those of that name. "page 16" and "bf16 kv" are found as well, and names with what reports put
/// in front of them ("rule seq_lens.is_dense", "metadata:sinks_missing") without that.
std::vector<KnownName> names_called(std::string_view text);

/// `text` without such a word in front.
std::string_view bare_name(std::string_view text);

}  // namespace attest
