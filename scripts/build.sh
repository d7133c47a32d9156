#!/usr/bin/env bash
# Configures and builds a preset: progress on a terminal, the whole log on an error.
# Usage: scripts/build.sh PRESET [ninja target ...]
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -ge 1 ] || { sed -n 2,3p "$0" | cut -c 3- >&2; exit 64; }
preset=$1
shift

log=$(mktemp)
trap 'rm -f "$log"' EXIT
echo "build: configuring preset $preset"
cmake --preset "$preset" >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
build_dir=$(sed -n 's/^-- Build files have been written to: //p' "$log")
started=$(date +%s)
if [ -t 1 ]; then
  ninja -C "$build_dir" "$@"
else
  ninja -C "$build_dir" --quiet "$@" >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
fi
echo "build: done in $(($(date +%s) - started)) s"
