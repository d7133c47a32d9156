#include "property_tests/misread/misreading.hpp"

namespace attest {
namespace {

/// A part of the list, and what of a kernel to look at for all of it.
struct Axis {
  void (*add)(std::vector<Misreading>&);
  std::string_view look;
};

// Simple ones first (misreading.hpp).
constexpr Axis axes[] = {
    {add_head_misreadings, "the kv head, `q_head / group`, in the addresses of K and V"},
    {add_list_misreadings,
     "how a key's page or slot is found: table row or indptr, `position / page_size`, the rest"},
    {add_position_misreadings, "the position that is looked up: what is added to the loop's index"},
    {add_stride_misreadings, "the strides in the address: page, token and head, of this tensor"},
    {add_exchange_misreadings,
     "the index in a tile and the step between tiles, as a load or a packing has them"},
    {add_tree_misreadings,
     "the index into the tree mask: row, column, row length, where a request's part begins"},
    {add_tree_shape_misreadings,
     "which block of the tree mask is read at all, and the key that its columns begin with"},
    {add_range_misreadings,
     "the bounds of the loop over keys, and `position - window < key <= position`"},
    {add_part_misreadings,
     "the loop over tiles, pages or splits: its first and last trip, its tail, the merge"},
    {add_hidden_misreadings,
     "what hides keys of a tile that no row may see: the mask of its tail and of the window"},
    {add_row_misreadings, "which row and head a block loads q for and stores its output to"},
    {add_owner_misreadings, "which request a row is taken to belong to: the search in q's offsets"},
};

}  // namespace

const std::vector<Operand>& operands() {
  static const std::vector<Operand> all = {{true, true, "", "K and V come"},
                                           {true, false, "k_", "K alone comes"},
                                           {false, true, "v_", "V alone comes"}};
  return all;
}

Misreading of_operand(const Operand& operand, const std::string& id, const std::string& says) {
  return {.id = operand.prefix + id,
          .says = operand.comes + " " + says,
          .k = operand.k,
          .v = operand.v};
}

const std::vector<Misreading>& all_misreadings() {
  static const std::vector<Misreading> list = [] {
    std::vector<Misreading> all;
    for (const Axis& axis : axes) {
      const std::size_t before = all.size();
      axis.add(all);
      for (std::size_t i = before; i < all.size(); ++i) all[i].look = axis.look;
    }
    return all;
  }();
  return list;
}

}  // namespace attest
