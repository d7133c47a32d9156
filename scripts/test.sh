#!/usr/bin/env bash
# Sets up, builds everything and runs the tests. Usage: scripts/test.sh [PRESET] [ctest arguments]
# PRESET: dev (default), ci, clang, asan, tsan, rocm, cuda, xeon, nightly
set -euo pipefail
cd "$(dirname "$0")/.."
case ${1:-} in --help) sed -n 2,3p "$0" | cut -c 3-; exit 0 ;; esac
preset=dev
if [ $# -gt 0 ] && [[ $1 != -* ]]; then
  preset=$1
  shift
fi
case "$preset" in
  clang | asan | tsan) scripts/setup.sh --lint ;;
  *) scripts/setup.sh ;;
esac
scripts/build.sh "$preset"
exec ctest --preset "$preset" -j "$(nproc)" "$@"
