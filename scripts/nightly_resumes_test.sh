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
# sparse, dense, long, wraps, 4 parts of the campaign, and the killed one again
[ "$(wc -l <"$work/runs")" = 9 ] || fail "finished steps must not run again: $(wc -l <"$work/runs") runs"
grep -q "faulty-wrap-bytes_int32.unified@cpu --expect-caught" "$work/runs" || fail "the wraps must be caught"
if grep -q "faulty-hang" "$work/runs"; then fail "other faults have no cell"; fi
[ "$(wc -l <"$work/out/large_kv.jsonl")" = 8 ] || fail "every step's record is kept"
grep -q "result: every required cell passed" "$work/out/summary.txt" || fail "the summary says so"

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
