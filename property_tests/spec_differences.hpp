#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "contracts/call.hpp"
#include "contracts/problem.hpp"
#include "fixtures/captured.hpp"

namespace attest {

/// One place where a call is not what its signature's lowering builds for the same step.
struct SpecDifference {
  std::string where;  ///< "cu_seqlens_q[2]", "seqused_k.dtype", "max_seqlen_q"
  std::string expected, got;
  std::string rule;       ///< a rule that fires on the same argument; empty = none asks for it
  bool rejected = false;  ///< that rule rejects the call
};

/// What a framework must build, compared with what it built: field by field, element by element.
struct SpecComparison {
  std::string id, kernel, mode, path, file_version, place;
  std::string unsupported;  ///< why there is nothing to compare with; empty = there is
  std::vector<SpecDifference> differences;
  std::int64_t more = 0;  ///< further elements that differ, counted only
};

/// Every difference of `got` from `expected`, a call of the same signature. Left out is what a
/// framework may choose: labels, offsets and sizes of storage, launch forms, rows of a token table,
/// and elements that no live request's row reads. At most `most_elements` of each array are put
/// into words.
SpecComparison spec_differences(const Call& expected, const Call& got, const Problem& problem,
                                std::int64_t most_elements = 8);

/// The same for a captured call and the lowering of its truth.
SpecComparison compare_with_spec(const CapturedCall& captured);

/// A block for people; empty where nothing differs.
std::string spec_text(const SpecComparison& comparison);

/// Sums over many calls.
struct SpecSummary {
  std::int64_t calls = 0, differing = 0, rejected = 0, unsupported = 0;
  void add(const SpecComparison& comparison);
  std::string text() const;  ///< one sentence
  /// 0: every call compared is as specified; 1: some call differs; 3: nothing to compare with; 64:
  /// no call.
  int exit_code() const;
};

}  // namespace attest
