#!/usr/bin/env bash
# ci/xeon.sh must stop with status 4 and a reason where the CPU has no AMX, before it builds anything.
# Where there is AMX, the script itself is the test; this one is skipped (77).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
grep -qw amx_tile /proc/cpuinfo && exit 77

status=0
output=$("$here/../ci/xeon.sh" 2>&1) || status=$?
if [ "$status" -ne 4 ] || [[ $output != *"amx@native is required"*"no amx_tile"* ]]; then
  echo "expected status 4 and a reason, got status $status and: $output"
  exit 1
fi
echo "xeon_refuses_test: refused: $output"
