#!/usr/bin/env bash
# A runner with a ROCm GPU and hipcc. ATTEST_REQUIRE=hip@rocm fails where no case ran on that GPU. The ROCm
# engine has been compiled, not run on hardware.
set -euo pipefail
cd "$(dirname "$0")/.."
export ATTEST_REQUIRE=${ATTEST_REQUIRE-hip@rocm}
scripts/test.sh rocm
mkdir -p attest-out
exec build-rocm/bin/attest run --cases 2000 --seed 1 --junit attest-out/rocm.xml --record attest-out/rocm.jsonl
