#!/usr/bin/env bash
# A pull request on any x86-64 machine: format, static checks, build with warnings as errors, tests.
# The tests come last, so that the log ends with ctest's summary.
set -euo pipefail
cd "$(dirname "$0")/.."
step() { printf '\n== %s (%s s)\n' "$1" "$SECONDS"; }

step "set-up"
scripts/setup.sh --lint --framework-tests
step "format"
scripts/format.sh --check
step "build, g++ with warnings as errors"
scripts/build.sh ci
step "clang-tidy and clang's warnings, sources"
scripts/tidy.sh build
step "tests"
scripts/test.sh ci
