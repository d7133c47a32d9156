// attest_address_width FILE.ll [--expect 64-bit|32-bit]: the width of every K and V address in each
// paged attention kernel of the file. Exit code 0 when all kernels have what is expected (64-bit by
// default).

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <fstream>
#include <map>
#include <string>

#include "backends/hip/inspect/address_width.hpp"
#include "backends/hip/kernels/paged_args.hpp"

namespace attest::hip {
namespace {

KernelFields fields_of_paged_args() {
  constexpr long data = offsetof(PoolArgs, data);
  return {.pools = {static_cast<long>(offsetof(PagedArgs, k)) + data,
                    static_cast<long>(offsetof(PagedArgs, v)) + data},
          .tables = {static_cast<long>(offsetof(PagedArgs, table) + offsetof(IndexArgs, data))}};
}

/// A kernel is as wide as its narrowest load; one unknown load makes it unknown.
AddressWidth width_of(const std::vector<KvLoad>& loads) {
  AddressWidth width = loads.empty() ? AddressWidth::unknown : AddressWidth::wide;
  for (const KvLoad& load : loads) {
    if (load.width == AddressWidth::narrow) return AddressWidth::narrow;
    if (load.width == AddressWidth::unknown) width = AddressWidth::unknown;
  }
  return width;
}

int inspect(const std::string& path, std::string_view expected) {
  std::ifstream file(path);
  if (!file) {
    std::fprintf(stderr, "address_width: cannot read %s\n", path.c_str());
    return 74;
  }
  const KernelFields fields = fields_of_paged_args();
  int kernels = 0;
  int other = 0;
  for (const LlvmFunction& function : read_llvm(file)) {
    if (function.name.find("paged_attention") == std::string::npos) continue;
    ++kernels;
    const std::vector<KvLoad> loads = kv_loads(function, fields);
    const AddressWidth width = width_of(loads);
    std::map<AddressWidth, int> counts;
    for (const KvLoad& load : loads) ++counts[load.width];
    std::printf("%-7s %3d loads: %d 64-bit, %d 32-bit, %d unknown  %s\n",
                std::string(name(width)).c_str(), static_cast<int>(loads.size()),
                counts[AddressWidth::wide], counts[AddressWidth::narrow],
                counts[AddressWidth::unknown], function.name.c_str());
    if (name(width) == expected) continue;
    ++other;
    for (const KvLoad& load : loads) {
      if (name(load.width) == expected) continue;
      std::printf("        %s: load %s, line %d\n", std::string(name(load.width)).c_str(),
                  load.value.c_str(), load.line);
    }
  }
  std::printf("%d kernels, %d not %s\n", kernels, other, std::string(expected).c_str());
  return kernels > 0 && other == 0 ? 0 : 1;
}

}  // namespace
}  // namespace attest::hip

int main(int count, char** arguments) {
  if (count != 2 && !(count == 4 && std::string_view(arguments[2]) == "--expect")) {
    std::fputs("usage: attest_address_width FILE.ll [--expect 64-bit|32-bit]\n", stderr);
    return 64;
  }
  return attest::hip::inspect(arguments[1], count == 4 ? arguments[3] : "64-bit");
}
