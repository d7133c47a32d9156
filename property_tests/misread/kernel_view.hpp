#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "contracts/attended.hpp"
#include "contracts/call.hpp"
#include "memory/tensor_layout.hpp"
#include "memory/tensor_source.hpp"

namespace attest {

/// One request as a kernel finds it in a call.
struct ViewedRequest {
  std::int64_t first_row = 0;  ///< of q and the output
  std::int64_t rows = 0;       ///< new tokens
  std::int64_t keys = 0;       ///< text keys with the new ones; of cross attention the encoder's
  std::int64_t pooled = 0;     ///< as many of them come from the pool, the rest from new tensors
  std::int64_t begin = 0;      ///< where its text begins in the lists
  std::int64_t encoder = 0;    ///< entries in front of that
  std::int64_t table_row = 0;  ///< of a table; else its number
  bool tree = false;           ///< its new tokens are a draft tree

  std::int64_t committed() const { return keys - rows; }
};

/// What the eight calling conventions have in common: lists of pages or slots, a pool that they
/// point into, and requests. It says where a right kernel finds each key, so that a wrong one can
/// be described as a small change of that.
struct KernelView {
  const TensorSource* source = nullptr;
  const Attended* truth = nullptr;
  PoolLayout k, v;
  /// Elements from one page (of `page` keys), key in it or kv head to the next, of K and V.
  struct Strides {
    std::int64_t page = 0, slot = 0, head = 0;
  };
  Strides k_strides, v_strides;
  std::vector<std::int64_t> entries;  ///< a table row after row, or all lists end to end
  std::int64_t columns = 0;           ///< of the table; 0: lists
  std::int64_t page = 1;              ///< keys an entry stands for
  bool new_apart = false;             ///< new keys come from tensors of their own
  bool stores_first = false;          ///< the kernel stores the new keys itself, then reads them
  bool mask_has_prefix = false;       ///< a tree mask has a column for each committed key too
  std::vector<ViewedRequest> requests;

  const Model& model() const { return source->problem().model; }
  std::int64_t group() const { return model().num_q_heads / model().num_kv_heads; }
  const ViewedRequest& request_of(std::int64_t row) const;
  /// Positions that a row sees by rights, ascending.
  std::vector<std::int64_t> positions(std::int64_t row) const;
};

/// Nothing for a call whose pool is not laid out as its lists count.
std::optional<KernelView> view_of(const Call& call, const TensorSource& source,
                                  const Attended& truth);

}  // namespace attest
