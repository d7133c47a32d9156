#pragma once

#include <span>

#include "backends/scalar/operands.hpp"
#include "contracts/work_lists.hpp"

namespace attest {

/// The persistent form of the kernel: works[i] attends the rows and keys of groups[i] and stores
/// either the output or a partial result, the merges add the partials up. A partial result that
/// nobody wrote is NaN, as memory may be; what no work and no merge writes stays as it was.
/// \pre groups.size() == lists.works.size() \throws KernelRefusal as attend()
void attend_works(const Operands& op, const WorkLists& lists, std::span<const RowGroup> groups);

}  // namespace attest
