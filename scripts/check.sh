#!/usr/bin/env bash
# Sets up, builds, and judges attention calls on every backend this machine can run.
# Usage: scripts/check.sh [--cases N] [--help]     N cases per backend, default 100
set -euo pipefail
cd "$(dirname "$0")/.."
cases=100
while [ $# -gt 0 ]; do
  case "$1" in
    --cases)
      [[ ${2:-} =~ ^[1-9][0-9]*$ ]] || { echo "check.sh: --cases ${2:-}: a number from 1 is needed (see --help)" >&2; exit 64; }
      cases=$2; shift 2 ;;
    --help) sed -n 2,3p "$0" | cut -c 3-; exit 0 ;;
    *) echo "check.sh: unknown argument '$1' (see --help)" >&2; exit 64 ;;
  esac
done
heading() { printf '\n== %s\n' "$*"; }

scripts/setup.sh
scripts/build.sh dev attest
attest=build/bin/attest

heading "What this machine can run"
"$attest" doctor

heading "Every backend it can run, $cases generated cases each (expected: all pass)"
"$attest" run --cases "$cases" --seed 1

heading "A kernel with a bug: its causal mask is one key too long (expected: mismatch)"
"$attest" run --backend faulty-causal_one_too_long.unified@cpu --cases 20 --seed 1 --expect-caught --found skip

for bug in "36541 an int32 seqused_k, and a layer's KV buffer past 2 GiB" \
           "31221 the verify length taken from the server's arguments" \
           "30105 expanded KV heads, and no split-KV: right and slow" \
           "36430 seq_lens overwritten: the prefix is short by the draft count"; do
  heading "A bug that shipped, from both sides: sglang#${bug%% *}, ${bug#* }"
  "$attest" replay fixtures/corpus/regressions/sglang-"${bug%% *}".*.json
done

heading "191 kernel calls recorded in SGLang's own backends, right and wrong ones, each with its label"
"$attest" check fixtures/corpus/captured --expect-labels

heading "check.sh: all as expected in $SECONDS s. Next: scripts/test.sh, or docs/your_kernel.md for a kernel of yours"
