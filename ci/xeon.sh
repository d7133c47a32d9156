#!/usr/bin/env bash
# A runner with AMX. Lacks so far: the AMX backend, so ATTEST_REQUIRE=amx@native below fails, as it must
# on a machine where nothing runs on real tiles.
set -euo pipefail
cd "$(dirname "$0")/.."
export ATTEST_REQUIRE=${ATTEST_REQUIRE-amx@native}
scripts/test.sh xeon
mkdir -p attest-out
exec build-xeon/bin/attest run --cases 2000 --seed 1 --junit attest-out/xeon.xml --record attest-out/xeon.jsonl
