#!/usr/bin/env bash
# Compiles a HIP kernel source for an AMD target to LLVM IR and checks the width of its K and V addresses.
# Usage: scripts/check_address_width.sh TOOL gfx942 SOURCE 64-bit|32-bit; exit 77: no clang that knows the target
set -euo pipefail
tool=${1:?"usage: check_address_width.sh TOOL ARCH SOURCE WIDTH"}
ir=$(mktemp --suffix=.ll)
trap 'rm -f "$ir"' EXIT
"$(dirname "$0")/compile_amdgcn.sh" "${2:?}" "${3:?}" "$ir"
"$tool" "$ir" --expect "${4:?}"
