#!/usr/bin/env bash
# The quick tests under AddressSanitizer (leaks count) and UBSan, and, where the kernels, the reference and the
# judge run threads, under ThreadSanitizer; clang-19, its warnings errors, over the tests too.
# Hours on two cores, so nightly: half an hour on sixteen. docs/architecture.md, "Sanitizers", says what is left out.
set -euo pipefail
cd "$(dirname "$0")/.."
step() { printf '\n== %s (%s s)\n' "$1" "$SECONDS"; }

step "set-up"
scripts/setup.sh --lint
step "build, clang-19 with ASan and UBSan, warnings as errors"
scripts/build.sh asan
step "tests under ASan and UBSan"
ctest --preset asan -j "$(nproc)"
step "build, clang-19 with TSan"
threaded=(reference_test scalar_test amx_emulation_test amx_test worker_test isolated_backend_test judge_test run_test)
scripts/build.sh tsan "${threaded[@]}"
step "tests under TSan"
for program in "${threaded[@]}"; do build-tsan/bin/"$program" --gtest_brief=1; done
