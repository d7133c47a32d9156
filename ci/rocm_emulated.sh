#!/usr/bin/env bash
# The compiled AMD code without AMD hardware, under AMD's CPU emulator rocjitsu where that is installed: an
# external command, neither built nor linked here. A pass means "right under this version of the emulator".
#   ATTEST_ROCJITSU           the command (default rocjitsu)
#   ATTEST_ROCJITSU_CONFIGS   its configs, one per target, separated by spaces
#   ATTEST_BINARY             attest with ATTEST_HIP="host;rocm" (default: the preset rocm is built)
#   ATTEST_CASES              cases a config (default 24): small ones, since the emulator is some 50 times slower
#                             than the host engine
#   ATTEST_EMULATED_LIMIT     seconds for one pass over a config (default 900)
# Status 4: it could not run, with the reason. No test that needs a GPU counts as run by this.
set -euo pipefail
cd "$(dirname "$0")/.."
cannot() { echo "rocm_emulated: not run: $1" >&2 && exit 4; }

rocjitsu=${ATTEST_ROCJITSU-rocjitsu}
command -v "$rocjitsu" >/dev/null || cannot "no command $rocjitsu (AMD's package amdrocm-emulation)"
[ -n "${ATTEST_ROCJITSU_CONFIGS-}" ] || cannot "ATTEST_ROCJITSU_CONFIGS names no config of the emulator"
# 1.3 to 1.7 GB a process were seen, and virtual memory of a terabyte, which no ulimit would take.
needed_kib=$((2 << 20))
free_kib=$(awk '/^MemAvailable/ {print $2}' /proc/meminfo)
[ "$free_kib" -ge "$needed_kib" ] || cannot "$((free_kib >> 10)) MiB of memory are free, 2048 are needed"

attest=${ATTEST_BINARY-}
if [ -z "$attest" ]; then
  scripts/build.sh rocm
  attest=$PWD/build-rocm/bin/attest
fi
out=$PWD/attest-out/emulated
mkdir -p "$out"
export ATTEST_REQUIRE=hip@rocjitsu # neither a GPU nor the host engine stands for it

# One pass over small cases, each launch in a worker process: a bad address kills the process it happens in. The
# emulator passes its config through a file of the user, so every pass has a folder of its own.
pass() {
  local name=$1 config=$2 cases=$3 status=0
  local runtime
  runtime=$(mktemp -d "$out/runtime.XXXXXX")
  ROCJITSU_RUNTIME_DIR=$runtime timeout --kill-after=10 "${ATTEST_EMULATED_LIMIT-900}" \
    "$rocjitsu" --config "$config" -- "$attest" run --backend hip@rocjitsu --seed 1 --cases "$cases" \
    --max-kv 256 --max-requests 2 --jobs 1 --time-limit 60 --junit "$out/$name.xml" \
    --out "$out/found" >"$out/$name.log" 2>&1 || status=$?
  rm -rf "$runtime"
  tail -15 "$out/$name.log"
  return "$status"
}

worst=0
for config in $ATTEST_ROCJITSU_CONFIGS; do
  name=$(basename "$config")
  printf '\n== %s, %s (emulated)\n' "$("$rocjitsu" --version 2>/dev/null | head -1 || true)" "$name"
  status=0
  pass "$name" "$config" "${ATTEST_CASES-24}" || status=$?
  [ "$status" -eq 0 ] || { echo "rocm_emulated: $name ended with status $status" >&2 && worst=1; }
  # Waves run in a fixed order there, so values do not show a missing barrier: the race detector's report does,
  # while the program ends with 0. Its silence is no proof.
  status=0
  RJ_RACE=1 pass "$name.races" "$config" 4 || status=$?
  [ "$status" -eq 0 ] || { echo "rocm_emulated: $name with RJ_RACE=1 ended with status $status" >&2 && worst=1; }
  if grep -n 'RACE' "$out/$name.races.log"; then
    echo "rocm_emulated: $name: the race detector reports a race" >&2
    worst=1
  fi
done
exit "$worst"
