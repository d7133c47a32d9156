#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "memory/stray_read.hpp"
#include "property_tests/misread/kernel_view.hpp"

namespace attest {

/// A row of q and the output, and one of its heads.
struct Place {
  std::int64_t row = 0;
  std::int64_t head = 0;
  bool operator==(const Place&) const = default;
};

/// What is computed at the moment.
struct Seen {
  const KernelView& view;
  Place place;
  std::int64_t number = 0;  ///< of the request
  std::int64_t token = 0;   ///< of the request's new ones

  const ViewedRequest& request() const { return view.requests[static_cast<std::size_t>(number)]; }
  std::int64_t position() const { return request().committed() + token; }
  /// Row of the block in which a kernel packs a kv head's q heads beside one another.
  std::int64_t packed() const { return token * view.group() + place.head % view.group(); }
};

/// One key that a row counts.
struct ReadKey {
  std::int64_t position = 0;
  bool zero_k = false;  ///< its score counts as 0
  bool zero_v = false;
};

/// How the K or V row of one key is looked up. A mistake edits it before the step that it is in;
/// every step follows from the ones before.
struct Lookup {
  PoolHalf half = PoolHalf::k;
  // Which key of whose.
  std::int64_t request = 0, position = 0, head = 0;
  // Which entry of the lists, and which key of its page.
  std::int64_t index = 0, within = 0;
  // Which page, and how far things lie apart.
  std::int64_t page = 0;
  KernelView::Strides strides;
  std::int64_t element = 0;  ///< of the row that is read first
};

using EditLookup = std::function<void(const Seen&, Lookup&)>;

/// A mistake of a kernel, as what it reads in place of the right thing. Empty functions are right.
struct Misreading {
  std::string id;    ///< "v_head_of_the_next_group"
  std::string says;  ///< a sentence
  /// Whose result the output holds; nothing = nobody writes it.
  std::function<std::optional<Place>(const Seen&)> holds = {};
  std::function<Place(const Seen&)> query = {};  ///< whose q is read
  /// Which keys count, by position; comes with the right ones.
  std::function<void(const Seen&, std::vector<ReadKey>&)> keys = {};
  bool k = true, v = true;  ///< which half the following are about
  EditLookup key = {};      ///< request, position, head
  EditLookup entry = {};    ///< index, within
  EditLookup address = {};  ///< page, strides, element
  EditLookup fresh = {};    ///< of a new token's tensor: position is the row of that, and head
  /// Elements of a row that count; of K and V.
  std::function<std::int64_t(const KernelView&, std::int64_t dim)> k_elements = {}, v_elements = {};
  bool unstored = false;       ///< new keys are read from the pool before they are stored
  std::string_view look = {};  ///< what of a kernel does this; of its whole part (misreadings.cpp)
};

/// All of them, simple ones first: of two that compute the same the first is named.
const std::vector<Misreading>& all_misreadings();

/// Their parts.
void add_position_misreadings(std::vector<Misreading>& all);
void add_list_misreadings(std::vector<Misreading>& all);
void add_stride_misreadings(std::vector<Misreading>& all);
void add_head_misreadings(std::vector<Misreading>& all);
void add_row_misreadings(std::vector<Misreading>& all);
void add_range_misreadings(std::vector<Misreading>& all);
void add_part_misreadings(std::vector<Misreading>& all);
void add_hidden_misreadings(std::vector<Misreading>& all);
void add_tree_misreadings(std::vector<Misreading>& all);
void add_tree_shape_misreadings(std::vector<Misreading>& all);
void add_exchange_misreadings(std::vector<Misreading>& all);
void add_owner_misreadings(std::vector<Misreading>& all);

/// K and V, one of them: "v_" and "V comes".
struct Operand {
  bool k = true, v = true;
  std::string prefix, comes;
};
const std::vector<Operand>& operands();
Misreading of_operand(const Operand& operand, const std::string& id, const std::string& says);

}  // namespace attest
