#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backends/backend.hpp"
#include "contracts/address_interval.hpp"
#include "property_tests/case.hpp"

namespace attest {

/// What carries the keys of one short sequence to a boundary of 32 bits.
enum class LargeKvBy {
  page_ids,  ///< many pages of ordinary size
  strides,   ///< few pages, far apart, in one of K and V; the other one is small
  view,      ///< the pool is a strided view of the storage of eight layers
  decoys,    ///< page ids, and a second request's pages where a wrapped offset lands
};
std::string_view name(LargeKvBy by);

/// One case of the boundary lattice.
struct LargeKvCell {
  Crossing aim;
  LargeKvBy by = LargeKvBy::page_ids;
  Signature signature = Signature::unified;
  Dtype kv_dtype = Dtype::bf16;
  Dtype length_dtype = Dtype::int32;  ///< of seqused_k; the CPU signatures have int64 alone
  Dtype table_dtype = Dtype::int32;   ///< of block_table, req_to_token or kv_indices
  std::string form;                   ///< forced; empty = the backend's choice

  /// "k above 2^31 bytes, page_ids, bf16, lengths int32, table int64, 3d"
  std::string name() const;
};

/// The lattice of what a backend claims, always in the same order: every boundary, side, dtype of K
/// and V and of the indices, for each way to get there; 1-byte elements once, since their bytes are
/// elements.
std::vector<LargeKvCell> large_kv_cells(const Capabilities& capabilities);

/// The cell as something to judge: the call is explicit, and `aim` makes it untrusted where it does
/// not get there. No two live pages lie a multiple of 2^31 or 2^32 bytes or elements apart, decoys
/// aside. \param index of the cell, seeds the tensors
Case case_of(const LargeKvCell& cell, std::uint64_t index);

/// The same tokens in a pool of a few pages: its output must have the same bits.
Case small_twin_of(const LargeKvCell& cell, std::uint64_t index);

/// Bytes of K and of V together that a pool without holes takes; sparse ones take none of it.
std::int64_t dense_bytes(const Case& c);

}  // namespace attest
