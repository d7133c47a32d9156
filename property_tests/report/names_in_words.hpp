#pragma once

#include <span>
#include <string_view>

namespace attest {

/// A printed name that no table of the program says more about than its enum does.
struct NameInWords {
  std::string_view kind, name;
  std::string_view says;
  std::string_view look = {};  ///< of a diagnosis, as in KnownName
};

/// Words of the judge's own oracles and of the diagnosis, modes, paths, kinds of heads, recipes,
/// outcomes of checks and of mutants, lines and columns of reports, engines, forms, regions of
/// poison, counters, signatures.
std::span<const NameInWords> names_in_words();

}  // namespace attest
