#!/usr/bin/env bash
# The nightly job. Runs the long campaign of what exists. Lacks so far: the boundary lattice over 2 GiB,
# dense and sparse, and resuming after a kill.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/setup.sh
scripts/build.sh nightly attest
mkdir -p attest-out
exec build-nightly/bin/attest run --cases "${ATTEST_CASES:-100000}" --seed "${ATTEST_SEED:-1}" \
  --junit attest-out/nightly.xml --record attest-out/nightly.jsonl
