#!/usr/bin/env bash
# Sets up, builds, and judges attention calls on every backend this machine can run.
# Usage: scripts/check.sh [--cases N] [--help]     N cases per backend, default 100
set -euo pipefail
cd "$(dirname "$0")/.."
cases=100
while [ $# -gt 0 ]; do
  case "$1" in
    --cases) cases=${2:?--cases needs a number}; shift 2 ;;
    --help) sed -n 2,3p "$0" | cut -c 3-; exit 0 ;;
    *) echo "check.sh: unknown argument '$1' (see --help)" >&2; exit 64 ;;
  esac
done
heading() { printf '\n== %s\n' "$*"; }

scripts/setup.sh
scripts/build.sh dev attest
attest=build/bin/attest
found=$(mktemp -d)
trap 'rm -rf "$found"' EXIT

heading "What this machine can run"
"$attest" doctor

heading "Every backend it can run, $cases generated cases each"
"$attest" run --cases "$cases" --seed 1

heading "A kernel with a bug: its causal mask is one key too long (expected: mismatch)"
"$attest" run --backend faulty-causal_one_too_long.unified@cpu --cases 20 --seed 1 --expect-caught --out "$found"

heading "Four bugs that shipped, each shown from both sides"
"$attest" replay fixtures/corpus/regressions/*.json

heading "Kernel calls recorded in SGLang's own backends"
"$attest" check fixtures/corpus/captured --expect-labels
