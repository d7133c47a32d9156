#!/usr/bin/env bash
# Configures and builds a preset: progress on a terminal, a line every 20 s elsewhere, the whole log
# on an error.
# Usage: scripts/build.sh PRESET [ninja target ...]
set -euo pipefail
cd "$(dirname "$0")/.."
case ${1:-} in --help) sed -n 2,4p "$0" | cut -c 3-; exit 0 ;; esac
[ $# -ge 1 ] || { sed -n 2,4p "$0" | cut -c 3- >&2; exit 64; }
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
  # sleep lets go of the pipe: who reads it must not wait for the last nap.
  (while sleep 20 >/dev/null 2>&1; do echo "build: step $(tail -1 "$log" | grep -o '^\[[0-9/]*\]' || echo -) after $(($(date +%s) - started)) s"; done) &
  watcher=$!
  trap 'kill "$watcher" 2>/dev/null || true; rm -f "$log"' EXIT
  ninja -C "$build_dir" "$@" >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
fi
echo "build: done in $(($(date +%s) - started)) s"
