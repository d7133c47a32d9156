#!/usr/bin/env bash
# Judges one production kernel where its package is installed. Usage: scripts/production_kernel_test.sh ATTEST KERNEL [CASES]
# Exit code 77 (skipped), with the reason, where it is not and ATTEST_REQUIRE does not name it; else that of attest run.
set -uo pipefail
attest=${1:?usage: production_kernel_test.sh ATTEST KERNEL [CASES]}
kernel=${2:?usage: production_kernel_test.sh ATTEST KERNEL [CASES]}
export ATTEST_WORKER=${ATTEST_WORKER:-$(dirname "$0")/attest_worker.py}
"$attest" run --backend "$kernel" --cases "${3:-200}" --quiet
code=$?
# Unavailable. Cases of what the adapter does not take (3) are no failure of the kernel.
if [ "$code" -eq 4 ] && [[ ",${ATTEST_REQUIRE:-}" != *",${kernel%%.*}@"* ]]; then exit 77; fi
[ "$code" -eq 3 ] && exit 0
exit "$code"
