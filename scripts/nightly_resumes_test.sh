#!/usr/bin/env bash
# The nightly job with a stand-in for attest: killed in a step, it goes on with that step; a step that fails,
# or a required engine that did not run, fails the job.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/attest" <<'FAKE'
#!/usr/bin/env bash
work=$(dirname "$0")
case "$*" in
  --version) echo "attest stand-in"; exit 0 ;;
  "doctor") printf '%s\n' "backend here" "scalar.unified@cpu yes plain" "hip.unified@cuda no none"; exit 0 ;;
  "doctor --faults") printf '%s\n' "faulty-wrap-bytes_int32.unified@cpu yes x" "faulty-hang.unified@cpu yes x"; exit 0 ;;
esac
echo "$*" >>"$work/runs"
while [ $# -gt 0 ]; do
  case "$1" in --record) echo "{}" >"$2" ;; --junit) echo "<x/>" >"$2" ;; esac
  shift
done
if [ -e "$work/kill_at" ] && [ "$(wc -l <"$work/runs")" = "$(cat "$work/kill_at")" ]; then kill -KILL $$; fi
exit "$(cat "$work/code" 2>/dev/null || echo 0)"
FAKE
chmod +x "$work/attest"
job() { ATTEST_BINARY=$work/attest ci/nightly_large_kv.sh --out "$work/out" "$@" >"$work/log" 2>&1; }
fail() { echo "nightly_resumes_test: $1" >&2; cat "$work/log" >&2; exit 1; }

echo 3 >"$work/kill_at"
if job --memory 1GiB; then fail "a killed step must end the job"; fi
grep -q "to go on" "$work/log" || fail "it must say how to go on"
[ "$(wc -l <"$work/runs")" = 3 ] || fail "two steps done, one killed"
rm "$work/kill_at"
job --memory 1GiB || fail "the rest passes"
# sparse, dense, long, wraps, 4 parts of the campaign, the changed calls, and the killed one again
[ "$(wc -l <"$work/runs")" = 10 ] || fail "finished steps must not run again: $(wc -l <"$work/runs") runs"
grep -q "^mutants --class metadata --calls 100000" "$work/runs" || fail "the rules must be tried"
grep -q "faulty-wrap-bytes_int32.unified@cpu --expect-caught" "$work/runs" || fail "the wraps must be caught"
if grep -q "faulty-hang" "$work/runs"; then fail "other faults have no cell"; fi
[ "$(wc -l <"$work/out/large_kv.jsonl")" = 8 ] || fail "every step's record is kept"
grep -q "result: every required cell passed" "$work/out/summary.txt" || fail "the summary says so"

runs=$(wc -l <"$work/runs")
if job --memory 1GiB; then fail "a finished folder is no second night"; fi
grep -q "holds a finished job" "$work/log" || fail "and it says so"
rm "$work/out/summary.txt"
if ATTEST_SEED=2 job --memory 1GiB; then fail "another seed is another job"; fi
grep -q "holds another job" "$work/log" || fail "and it says so"
if job --memory lots; then fail "--memory lots is no size"; fi
if job --memory; then fail "--memory needs a value"; fi
[ "$(wc -l <"$work/runs")" = "$runs" ] || fail "none of these may run a step"
rm -r "$work/out"
echo 74 >"$work/code"
if job; then fail "a full disk ends the job"; fi
[ -z "$(ls "$work/out/steps" | grep code)" ] || fail "a full disk is no verdict of the step"
rm "$work/code"
job || fail "with room again the job goes on"

rm -r "$work/out"
job || fail "without --memory the job passes"
grep -q "dense: not run" "$work/out/summary.txt" || fail "what was left out is said"

rm -r "$work/out"
if ATTEST_REQUIRE=hip@cuda job; then fail "a required engine that did not run fails the job"; fi
grep -q "required hip@cuda: 0 backends ran" "$work/out/summary.txt" || fail "and is named"

rm -r "$work/out"
echo 5 >"$work/code"
if job; then fail "an untrusted cell fails the job"; fi
echo "nightly_resumes_test: ok"
