#!/usr/bin/env bash
# The nightly job: offsets past 2 GiB on sparse and on dense pools, contexts of up to a million keys, and a
# long campaign, on every backend that this machine can run; and the rules on calls with one field changed.
# Usage: ci/nightly_large_kv.sh [--memory SIZE] [--out FOLDER] [--build PRESET]
#   --memory SIZE   real memory for K and V together, as 20GiB: the dense half judges the cells that fit. It
#                   is never guessed; without it the dense half is left out, and the summary says so.
#   --out FOLDER    records (JSONL), JUnit files and summary.txt; default attest-out. Started again with the
#                   same folder after a kill, the job goes on behind its last finished step.
#   --build PRESET  nightly (default), cuda, rocm, xeon, dev
# ATTEST_MEMORY and ATTEST_PRESET stand for the two options where a workflow calls the script.
# ATTEST_REQUIRE=hip@rocm,amx@native fails the job where these did not run. ATTEST_CASES: cases of the
# campaign (default 100000), ATTEST_CALLS: changed calls (100000), ATTEST_SEED the seed of both.
# ATTEST_BINARY: a binary instead of a build.
set -euo pipefail
cd "$(dirname "$0")/.."
memory=${ATTEST_MEMORY-} out=attest-out preset=${ATTEST_PRESET-nightly}
while [ $# -gt 0 ]; do
  case "$1" in
    --help | -h) sed -n 2,14p "$0" | cut -c 3-; exit 0 ;;
    --memory | --out | --build) [ $# -ge 2 ] || { echo "nightly_large_kv: $1 needs a value" >&2; exit 64; } ;;
    *) echo "nightly_large_kv: unknown option $1" >&2; exit 64 ;;
  esac
  case "$1" in
    --memory) memory=$2 ;;
    --out) out=$2 ;;
    --build) preset=$2 ;;
  esac
  shift 2
done
[ -z "$memory" ] || [[ $memory =~ ^[0-9]+([KMG]iB)?$ ]] ||
  { echo "nightly_large_kv: --memory $memory is no size such as 800MiB or 20GiB" >&2; exit 64; }

attest=${ATTEST_BINARY-}
if [ -z "$attest" ]; then
  scripts/setup.sh
  scripts/build.sh "$preset" attest
  case $preset in dev | ci) attest=build/bin/attest ;; *) attest=build-$preset/bin/attest ;; esac
fi
[ -x "$attest" ] || { echo "nightly_large_kv: $attest is no program" >&2; exit 64; }
mkdir -p "$out/steps"
exec 9>"$out/lock"
flock -n 9 || { echo "nightly_large_kv: another job writes $out" >&2; exit 74; }
# What was finished counts for the same binary and options only.
job="$("$attest" --version | tr '\n' ' ') memory=$memory cases=${ATTEST_CASES:-100000} calls=${ATTEST_CALLS:-100000} seed=${ATTEST_SEED:-1}"
if [ -e "$out/job" ] && [ "$(cat "$out/job")" != "$job" ]; then
  echo "nightly_large_kv: $out holds another job: $(cat "$out/job"); this one: $job" >&2
  exit 64
fi
if [ -e "$out/summary.txt" ]; then
  echo "nightly_large_kv: $out holds a finished job; give --out an empty folder" >&2
  exit 64
fi
echo "$job" >"$out/job"
required=${ATTEST_REQUIRE-}
export ATTEST_REQUIRE=  # of the job as a whole, below

# step NAME ARGUMENT...: attest with these. Done when its .code exists: it is written last, and renamed into place.
step() {
  local name=$1
  shift
  local at=$out/steps/$name
  if [ -e "$at.code" ]; then
    echo "== $name: done before"
    return
  fi
  echo "== $name (${SECONDS} s)"
  local code=0
  # The lock is this script's: a kernel that outlives it must not hold the folder.
  "$attest" "$@" >"$at.txt" 2>&1 9>&- || code=$?
  tail -n 12 "$at.txt"
  # Interrupted, killed, or the machine's failure: nothing is done, and the next start judges this step again.
  if [ "$code" -ge 64 ]; then
    echo "$name: ended with $code, no verdict; start again with --out $out to go on" >&2
    exit "$code"
  fi
  echo "$code" >"$at.code.new"
  mv "$at.code.new" "$at.code"
}

run_step() {
  local name=$1
  shift
  step "$name" run "$@" --record "$out/steps/$name.jsonl" --junit "$out/steps/$name.xml" --out "$out/found" --quiet
}

here=$("$attest" doctor | awk '$2 == "yes" && $1 ~ /^[a-z]+[.][a-z_]+@[a-z]+$/ && $1 !~ /@trap$/ {print $1}')
[ -n "$here" ] || { echo "nightly_large_kv: no backend can run here" >&2; exit 4; }
for backend in $here; do
  run_step "sparse.$backend" --profile large-kv --backend "$backend"
done
if [ -n "$memory" ]; then
  for backend in $here; do
    run_step "dense.$backend" --profile large-kv --memory "$memory" --backend "$backend" --time-limit 600
  done
fi
for backend in $here; do
  run_step "long.$backend" --profile long-context --backend "$backend" --time-limit 1800
done
for backend in $here; do
  wraps=$("$attest" doctor --faults | awk -v kernel=".${backend#*.}" \
    '$2 == "yes" && $1 ~ /^faulty-wrap-/ && index($1, kernel) {print $1}' | paste -sd, -)
  [ -z "$wraps" ] || run_step "wraps.$backend" --profile large-kv --backend "$wraps" --expect-caught --max-saved 0
done
for part in 1 2 3 4; do
  run_step "campaign.$part" --cases "${ATTEST_CASES:-100000}" --seed "${ATTEST_SEED:-1}" --shard "$part/4"
done
step metadata mutants --class metadata --calls "${ATTEST_CALLS:-100000}" --seed "${ATTEST_SEED:-1}"

cat "$out"/steps/*.jsonl >"$out/large_kv.jsonl"
worst=0
{
  "$attest" --version | head -1
  for code in "$out"/steps/*.code; do
    name=$(basename "$code" .code)
    result=$(cat "$code")
    printf '%-30s exit %s  %s\n' "$name" "$result" "$(grep -hE '^(not judged|.*left out)' "$out/steps/$name.txt" | head -1 || true)"
    [ "$result" = 0 ] || worst=1
  done
  [ -n "$memory" ] || echo "dense: not run, no --memory was given"
  for engine in ${required//,/ }; do
    implementation=${engine%@*}
    ran=$(echo "$here" | grep -cE "^$implementation[.].*@${engine#*@}$" || true)
    echo "required $engine: $ran backends ran"
    [ "$ran" -gt 0 ] || worst=4
  done
  echo "result: $([ "$worst" = 0 ] && echo every required cell passed || echo failed)"
} >"$out/summary.txt"
cat "$out/summary.txt"
grep -q '^result: every' "$out/summary.txt"
