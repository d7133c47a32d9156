#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace attest {

/// What shows a bug.
enum class BugClass {
  numeric,    ///< an output of one call
  trace,      ///< an output of the second of two steps
  rule_only,  ///< the call alone: no output that a kernel here computes is wrong
  relation,   ///< two runs that must agree
  cost,       ///< right numbers, slow
  outside,    ///< nothing that a call here could say
};
std::string_view name(BugClass kind);

/// Where it sits.
enum class Site {
  metadata,
  launcher,
  wrapper,
  kernel_math,
  kernel_address,
  reduction,
  graph,
  process,
};
std::string_view name(Site site);

/// A bug that somebody reported in public, in our words.
struct HandedBug {
  std::string_view id;      ///< "sgl-36430-amx-extend"
  std::string_view source;  ///< public thread
  std::string_view says;    ///< what goes wrong, one sentence
  BugClass kind = BugClass::numeric;
  Site site = Site::metadata;
  std::string_view kernels;  ///< the family it belongs to
  /// What stands for it, comma-separated, the closest first: names of mutants.hpp, or beginnings of
  /// them that end where a part does; "rule:<id>"; "test:<suite>". Empty: nothing does.
  std::string_view stands;
  std::string_view why;  ///< it is not judged by a number here; may be empty where it is
};

/// Every one of them. The denominator: none is left out.
std::vector<HandedBug> all_handed_bugs();

// Its parts, one file each.
std::span<const HandedBug> bugs_of_addresses();
std::span<const HandedBug> bugs_of_lengths();
std::span<const HandedBug> bugs_of_masks();
std::span<const HandedBug> bugs_of_softmax();

}  // namespace attest
