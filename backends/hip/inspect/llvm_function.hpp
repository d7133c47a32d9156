#pragma once

#include <istream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace attest::hip {

/// One instruction of LLVM's textual IR (opaque pointers, LLVM 16 or newer), as far as a slice
/// needs it.
struct Instruction {
  std::string opcode;                 ///< "mul", "getelementptr"; of calls "call"
  int width = 0;                      ///< bits of the (element) type it works on; 0 = no integer
  std::vector<std::string> operands;  ///< names with their % or @, in order; no labels, no types
  std::string callee;                 ///< "@llvm.smin.i64"
  std::vector<std::string> literals;  ///< integer constants among the operands
  int line = 0;                       ///< in the source, from debug information; 0 = not known
};

struct LlvmFunction {
  std::string name;                           ///< mangled, without the @
  std::vector<std::string> parameters;        ///< "%0"
  std::map<std::string, Instruction> values;  ///< what each name is computed by
  std::vector<Instruction> effects;           ///< without a name: stores and calls
};

/// Every `define` in a .ll file. Lines that are no instruction are passed over.
std::vector<LlvmFunction> read_llvm(std::istream& text);

/// One line of a function's body. \returns an empty opcode for what is no instruction.
/// \param name  receives the name it defines, or nothing.
Instruction read_instruction(std::string_view line, std::string& name);

}  // namespace attest::hip
