#include "backends/hip/inspect/address_width.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <tuple>

namespace attest::hip {
namespace {

/// What a pointer points into.
struct Roots {
  std::set<long> fields;  ///< pointers of the argument struct
  bool shared = false;    ///< the block's shared memory
};

constexpr std::array products = {"mul", "shl"};
constexpr std::array followed = {
    "add",           "sub",           "mul",           "shl",           "or",
    "and",           "xor",           "ashr",          "lshr",          "sdiv",
    "udiv",          "srem",          "urem",          "sext",          "zext",
    "trunc",         "phi",           "select",        "freeze",        "bitcast",
    "ptrtoint",      "inttoptr",      "addrspacecast", "getelementptr", "extractelement",
    "insertelement", "shufflevector", "extractvalue"};

template <std::size_t n>
bool among(const std::string& word, const std::array<const char*, n>& list) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

class Slice {
 public:
  Slice(const LlvmFunction& kernel, const KernelFields& fields)
      : kernel_(kernel), fields_(fields) {}

  std::vector<KvLoad> loads() {
    std::vector<KvLoad> found;
    for (const auto& [name, it] : kernel_.values) {
      if (it.opcode == "load" && !it.operands.empty())
        consider(name, it.operands.back(), it, found);
    }
    for (const Instruction& it : kernel_.effects) {
      const bool copies = it.callee.starts_with("@llvm.memcpy") && it.operands.size() >= 2;
      if (copies) consider(it.callee, it.operands[1], it, found);
    }
    return found;
  }

 private:
  void consider(const std::string& name, const std::string& pointer, const Instruction& it,
                std::vector<KvLoad>& found) {
    if (!meets(roots_of(pointer).fields, fields_.pools)) return;
    seen_.clear();
    wide_ = narrow_ = false;
    walk(pointer, false, false);
    const AddressWidth width = narrow_ ? AddressWidth::narrow
                               : wide_ ? AddressWidth::wide
                                       : AddressWidth::unknown;
    found.push_back({name, it.line, width});
  }

  static bool meets(const std::set<long>& a, const std::set<long>& b) {
    return std::any_of(a.begin(), a.end(), [&](long field) { return b.contains(field); });
  }

  const Instruction* defined(const std::string& name) const {
    const auto it = kernel_.values.find(name);
    return it == kernel_.values.end() ? nullptr : &it->second;
  }

  /// The field of the argument struct that `pointer` is the address of.
  std::optional<long> field_at(const std::string& pointer) const {
    if (kernel_.parameters.empty()) return std::nullopt;
    if (pointer == kernel_.parameters[0]) return 0;
    const Instruction* it = defined(pointer);
    if (it == nullptr || it->opcode != "getelementptr" || it->operands.empty()) return std::nullopt;
    if (it->operands[0] != kernel_.parameters[0] || it->literals.empty()) return std::nullopt;
    return std::stol(it->literals.back());
  }

  const Roots& roots_of(const std::string& pointer) {
    const auto known = roots_.find(pointer);
    if (known != roots_.end()) return known->second;
    roots_[pointer] = {};  // ends the recursion of loops
    Roots roots;
    if (pointer.starts_with('@')) roots.shared = true;  // kernels have no other globals to write
    const Instruction* it = defined(pointer);
    if (it != nullptr) gather_roots(*it, roots);
    return roots_[pointer] = roots;
  }

  void gather_roots(const Instruction& it, Roots& roots) {
    if (it.opcode == "load" && !it.operands.empty()) {
      if (const auto field = field_at(it.operands.back())) roots.fields.insert(*field);
      return;
    }
    if (!among(it.opcode, followed)) return;
    // Of an address computation only the base is a pointer.
    const std::size_t pointers = it.opcode == "getelementptr" ? 1 : it.operands.size();
    for (std::size_t i = 0; i < std::min(pointers, it.operands.size()); ++i) {
      const Roots more = roots_of(it.operands[i]);
      roots.fields.insert(more.fields.begin(), more.fields.end());
      roots.shared |= more.shared;
    }
  }

  /// Whether `it` drops the upper half of a 64-bit value: a truncation, a mask of 32 bits, or a
  /// pair of shifts by 32.
  bool cuts(const Instruction& it) const {
    if (it.opcode == "trunc") return it.width > 32;
    const auto has = [&](const char* literal) {
      return std::find(it.literals.begin(), it.literals.end(), literal) != it.literals.end();
    };
    if (it.width != 64) return false;
    if (it.opcode == "and") return has("4294967295") || has("4294967294") || has("4294967292");
    if (it.opcode != "ashr" && it.opcode != "lshr") return false;
    const Instruction* shifted = it.operands.empty() ? nullptr : defined(it.operands[0]);
    return has("32") && shifted != nullptr && shifted->opcode == "shl";
  }

  /// \param narrow  a product of 32 bits lies between here and the address
  /// \param cut     a value is cut to 32 bits between here and the address
  void walk(const std::string& name, bool narrow, bool cut) {
    if (!seen_.insert({name, narrow, cut}).second) return;
    const Instruction* it = defined(name);
    if (it == nullptr) return;
    if (it->opcode == "load") return walk_load(*it, narrow, cut);
    const bool intrinsic = it->opcode == "call" && it->callee.starts_with("@llvm.");
    if (!intrinsic && !among(it->opcode, followed)) return;
    cut = cut || cuts(*it);
    if (among(it->opcode, products)) narrow = narrow || it->width <= 32 || cut;
    for (const std::string& operand : it->operands) walk(operand, narrow, cut);
  }

  void walk_load(const Instruction& load, bool narrow, bool cut) {
    if (load.operands.empty()) return;
    const Roots roots = roots_of(load.operands.back());
    if (meets(roots.fields, fields_.tables)) {
      (narrow ? narrow_ : wide_) = true;
      return;
    }
    if (!roots.shared) return;
    for (const Instruction& store : kernel_.effects) {
      if (store.opcode != "store" || store.operands.size() < 2 || store.width != load.width)
        continue;
      if (roots_of(store.operands.back()).shared) walk(store.operands.front(), narrow, cut);
    }
  }

  const LlvmFunction& kernel_;
  const KernelFields& fields_;
  std::map<std::string, Roots> roots_;
  std::set<std::tuple<std::string, bool, bool>> seen_;
  bool wide_ = false;
  bool narrow_ = false;
};

}  // namespace

std::string_view name(AddressWidth width) {
  switch (width) {
    case AddressWidth::wide:
      return "64-bit";
    case AddressWidth::narrow:
      return "32-bit";
    case AddressWidth::unknown:
      break;
  }
  return "unknown";
}

std::vector<KvLoad> kv_loads(const LlvmFunction& kernel, const KernelFields& fields) {
  return Slice(kernel, fields).loads();
}

}  // namespace attest::hip
