#!/usr/bin/env bash
# Installs a build into a scratch folder and builds a small program against find_package(attest).
# Usage: scripts/check_install.sh BUILD_DIR
set -euo pipefail
build=${1:?usage: check_install.sh BUILD_DIR}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$build" --prefix "$work/prefix" >"$work/install.log" || { cat "$work/install.log"; exit 1; }

mkdir "$work/plugin"
cat > "$work/plugin/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.25)
project(plugin LANGUAGES CXX)
find_package(attest REQUIRED)
add_executable(plugin main.cpp)
target_link_libraries(plugin PRIVATE attest::contracts)
CMAKE
cat > "$work/plugin/main.cpp" <<'CPP'
#include <iostream>

#include "contracts/attended.hpp"

int main() {
  attest::Problem problem;
  problem.requests = {{.sequence = 1, .committed = 3, .new_tokens = 1}};
  std::cout << attest::attended(problem).rows[0].visible() << " visible keys\n";
}
CPP
cmake -S "$work/plugin" -B "$work/plugin/build" -DCMAKE_PREFIX_PATH="$work/prefix" >"$work/log" 2>&1 &&
  cmake --build "$work/plugin/build" >>"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
"$work/plugin/build/plugin" | grep -qx "4 visible keys"
"$work/prefix/bin/attest" --version >/dev/null
echo "check_install: ok"
