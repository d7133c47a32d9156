#!/usr/bin/env bash
# Configuring without a package must fail and name it and the remedy. Usage: scripts/missing_packages_test.sh
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

expect() {  # expect PACKAGE TEXT: without the package, configuring fails with TEXT
  local output
  rm -rf "$work/build"
  if output=$(cmake -S "$root" -B "$work/build" -DCMAKE_DISABLE_FIND_PACKAGE_"$1"=ON "${@:3}" 2>&1); then
    echo "configured without $1"
    exit 1
  fi
  # CMake breaks lines where it likes.
  output=$(tr -s ' \n' ' ' <<<"$output")
  if [[ $output != *"$2"* ]]; then
    echo "expected '$2' without $1, got: $output"
    exit 1
  fi
}

expect Eigen3 "Install libeigen3-dev (scripts/setup.sh does), or configure with -DATTEST_FETCH_DEPS=ON"
expect GTest "Install libgtest-dev libgmock-dev"
expect Boost "Install libboost-context-dev"
expect Boost "ATTEST_FETCH_DEPS does not build it" -DATTEST_FETCH_DEPS=ON
echo "missing_packages_test: each is named"
