#!/usr/bin/env bash
# The job beside ci/cpu.sh: clang's warnings as errors over the whole tree, tests included, and the quick
# tests under AddressSanitizer (leaks count), UBSan and, where threads run, ThreadSanitizer.
# docs/architecture.md, "Sanitizers", says what is switched off and why.
set -euo pipefail
cd "$(dirname "$0")/.."
step() { printf '\n== %s (%s s)\n' "$1" "$SECONDS"; }

step "set-up"
scripts/setup.sh --lint
step "build, clang-19 with ASan and UBSan, warnings as errors"
scripts/build.sh asan
step "tests under ASan and UBSan"
ctest --preset asan -j "$(nproc)"
# The programs whose tests start threads: the reference, the kernels, the judge's workers.
step "build, clang-19 with TSan"
scripts/build.sh tsan reference_test scalar_test amx_test worker_test isolated_backend_test judge_test worker_test_child
step "tests under TSan"
ctest --preset tsan -j "$(nproc)"
