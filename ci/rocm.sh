#!/usr/bin/env bash
# A runner with a ROCm GPU. Lacks so far: the HIP backend, so ATTEST_REQUIRE=hip@rocm below fails, as it
# must on a machine where nothing runs on a GPU.
set -euo pipefail
cd "$(dirname "$0")/.."
export ATTEST_REQUIRE=${ATTEST_REQUIRE-hip@rocm}
scripts/test.sh rocm
mkdir -p attest-out
exec build-rocm/bin/attest run --cases 2000 --seed 1 --junit attest-out/rocm.xml --record attest-out/rocm.jsonl
