#!/usr/bin/env bash
# Installs a build into a scratch folder, builds docs/examples/my_kernel against find_package(attest),
# and sees the example pass and its bug caught; a C program checks a call through libattest; the plugin
# docs/examples/my_plugin is built against the one header, and passes or has its bug caught.
# Usage: scripts/check_install.sh BUILD_DIR
set -euo pipefail
build=${1:?usage: check_install.sh BUILD_DIR}
here=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$build" --prefix "$work/prefix" >"$work/install.log" 2>&1 || { cat "$work/install.log"; exit 1; }
"$work/prefix/bin/attest" --version >/dev/null

mkdir "$work/c"
cat > "$work/c/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.25)
project(c_caller LANGUAGES C CXX)
find_package(attest REQUIRED)
add_executable(c_caller main.c)
target_link_libraries(c_caller PRIVATE attest::c)
CMAKE
cat > "$work/c/main.c" <<'C'
#include <stdio.h>
#include "attest.h"
int main(void) { printf("%d\n", attest_abi_version()); return 0; }
C
for project in "$here/docs/examples/my_kernel" "$work/c"; do
  name=$(basename "$project")
  { cmake -S "$project" -B "$work/build-$name" -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$work/prefix" &&
    cmake --build "$work/build-$name"; } >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
done
"$work/build-c/c_caller" >/dev/null
"$work/build-my_kernel/my_kernel" >"$work/log" || { cat "$work/log"; exit 1; }
grep -qx "0 of 40 cases failed" "$work/log"
if "$work/build-my_kernel/my_kernel" bug >"$work/log"; then
  echo "check_install: the example's bug was not caught"
  exit 1
fi
grep -q "causal_one_long" "$work/log" || { echo "check_install: the example's bug was not explained"; cat "$work/log"; exit 1; }

# A plugin needs the one header and a C compiler; both come with the installed tree (docs/plugins.md).
plugin="$work/prefix/share/attest/examples/my_plugin/my_plugin.c"
for bug in "" -DBUG; do
  "${CC:-cc}" -shared -fPIC -O2 $bug -I "$work/prefix/include/attest/backends/plugin" "$plugin" -o "$work/libmine$bug.so" -lm
done
cd "$work"
run=(prefix/bin/attest run --cases 40 --max-kv 128 --quiet --out found)
"${run[@]}" --backend ./libmine.so >log || { cat log; exit 1; }
if "${run[@]}" --backend ./libmine-DBUG.so --max-saved 1 >log; then
  echo "check_install: the example plugin's bug was not caught"
  exit 1
fi
grep -q "causal_one_long" log || { echo "check_install: the example plugin's bug was not explained"; cat log; exit 1; }
echo "check_install: ok"
