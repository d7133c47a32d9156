#include "property_tests/misread/misreading.hpp"

namespace attest {

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
    add_head_misreadings(all);
    add_list_misreadings(all);
    add_position_misreadings(all);
    add_stride_misreadings(all);
    add_tree_misreadings(all);
    add_range_misreadings(all);
    add_part_misreadings(all);
    add_row_misreadings(all);
    return all;
  }();
  return list;
}

}  // namespace attest
