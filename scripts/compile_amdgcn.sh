#!/usr/bin/env bash
# Compiles a HIP kernel source for an AMD target with clang alone: no ROCm, nothing is executed.
# Usage: scripts/compile_amdgcn.sh gfx942 SOURCE [OUTPUT.ll|OUTPUT.s]; exit 77: no clang that knows the target
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
arch=${1:?"usage: compile_amdgcn.sh ARCH SOURCE [OUTPUT]"}
source=${2:?"usage: compile_amdgcn.sh ARCH SOURCE [OUTPUT]"}
output=${3:-/dev/null}
clang=${ATTEST_AMDGCN_CLANG:-clang++-19}
if ! command -v "$clang" >/dev/null; then
  echo "skipped: no $clang here (scripts/setup.sh --lint installs it; ATTEST_AMDGCN_CLANG names another)"
  exit 77
fi
flags=(-x hip -nogpuinc -nogpulib --cuda-device-only --offload-arch="$arch" -std=c++20 -O3 -I"$root" -S)
if [ "${output##*.}" = ll ]; then flags+=(-emit-llvm -g1); fi
probe=$(mktemp --suffix=.cpp)
trap 'rm -f "$probe"' EXIT
echo '__attribute__((global)) void probe() {}' > "$probe"
if ! "$clang" "${flags[@]}" "$probe" -o /dev/null 2>/dev/null; then
  echo "skipped: $("$clang" --version | head -n 1) does not know $arch"
  exit 77
fi
"$clang" "${flags[@]}" "$source" -o "$output"
echo "compiled $(basename "$source") for $arch with $("$clang" --version | head -n 1); not run on hardware"
