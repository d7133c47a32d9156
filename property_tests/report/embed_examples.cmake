# cmake -DROOT=<corpus/reject> -DOUT=<file.cpp> -P embed_examples.cmake
# One row per reject fixture, so that an installed binary can show what breaks a rule.
file(GLOB files RELATIVE ${ROOT} ${ROOT}/*/*.json)
list(SORT files)
set(rows "")
foreach(file IN LISTS files)
  get_filename_component(rule ${file} DIRECTORY)
  file(READ ${ROOT}/${file} json)
  string(APPEND rows "    {\"${rule}\", \"${file}\",\n     R\"attest~(${json})attest~\"},\n")
endforeach()
file(WRITE ${OUT}.new "// Written by embed_examples.cmake from fixtures/corpus/reject.
#include \"property_tests/report/examples.hpp\"

namespace attest {

const std::vector<Example>& rule_examples() {
  static const std::vector<Example> examples = {
${rows}  };
  return examples;
}

}  // namespace attest
")
file(COPY_FILE ${OUT}.new ${OUT} ONLY_IF_DIFFERENT)
file(TOUCH ${OUT})
