#!/usr/bin/env bash
# ci/rocm_emulated.sh with a stand-in for the emulator, which runs no AMD code: what the script asks for, and what it
# makes of the answers. The emulator itself is not run by this.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder/tree/ci"
cp "$here/../ci/rocm_emulated.sh" "$folder/tree/ci/"

cat >"$folder/rocjitsu" <<'STAND_IN'
#!/usr/bin/env bash
[ "$1" = --version ] && echo "rocjitsu 0.0 (stand-in)" && exit 0
[ "$1" = --config ] && [ "$3" = -- ] || exit 99
[ -d "$ROCJITSU_RUNTIME_DIR" ] || exit 98
echo "config=$2 race=${RJ_RACE-0} require=$ATTEST_REQUIRE runtime=$ROCJITSU_RUNTIME_DIR: ${*:4}" >>"$STAND_IN_LOG"
case $STAND_IN_DOES in
  races) [ -n "${RJ_RACE-}" ] && echo "[rj] RACE: LDS write after read" ;;
  dies) kill -SEGV $$ ;;
  mismatch) exit 1 ;;
  hangs) sleep 60 ;;
esac
exit 0
STAND_IN
chmod +x "$folder/rocjitsu"

# expect STATUS TEXT SETTING...: the script's status, and a text it must print.
expect() {
  local wanted=$1 text=$2 status=0 output
  shift 2
  output=$(env STAND_IN_LOG="$folder/log" STAND_IN_DOES=passes ATTEST_ROCJITSU="$folder/rocjitsu" \
    ATTEST_ROCJITSU_CONFIGS="gfx942.cfg gfx950.cfg" ATTEST_BINARY=/bin/true "$@" \
    "$folder/tree/ci/rocm_emulated.sh" 2>&1) || status=$?
  if [ "$status" -ne "$wanted" ] || [[ $output != *"$text"* ]]; then
    echo "with $*: expected status $wanted and '$text', got status $status and: $output"
    exit 1
  fi
}

expect 4 "not run: no command" ATTEST_ROCJITSU="$folder/absent"
expect 4 "names no config" ATTEST_ROCJITSU_CONFIGS=
[ ! -e "$folder/log" ] || { echo "something was run without a config" && exit 1; }

expect 0 "gfx950.cfg (emulated)"
[ "$(wc -l <"$folder/log")" -eq 4 ] || { echo "expected two passes over each config" && exit 1; }
[ "$(grep -c 'race=1' "$folder/log")" -eq 2 ] || { echo "expected a pass with the race detector each" && exit 1; }
for part in "run --backend hip@rocjitsu" "--max-kv 256 --max-requests 2" "--time-limit 60" "require=hip@rocjitsu"; do
  [ "$(grep -c -- "$part" "$folder/log")" -eq 4 ] || { echo "not in every pass: $part" && exit 1; }
done
folders=$(grep -o 'runtime=[^:]*' "$folder/log" | sort -u | wc -l)
[ "$folders" -eq 4 ] || { echo "two passes shared a runtime folder" && exit 1; }

expect 1 "the race detector reports a race" STAND_IN_DOES=races
expect 1 "ended with status 139" STAND_IN_DOES=dies
expect 1 "ended with status 1" STAND_IN_DOES=mismatch
expect 1 "ended with status 124" STAND_IN_DOES=hangs ATTEST_EMULATED_LIMIT=0.2
echo "rocm_emulated_test: the script asks for what it should and believes no silence"
