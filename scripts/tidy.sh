#!/usr/bin/env bash
# clang-tidy-19 over the sources of a configured build. Usage: scripts/tidy.sh BUILD_DIR [file ...]
# Without files: every source that is not a test; tests get clang's warnings alone (they are the bulk
# of the time and none of what ships). Sources for GPU compilers are theirs to warn about.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:?usage: tidy.sh BUILD_DIR [file ...]}
shift
[ -f "$build/compile_commands.json" ] || { echo "tidy.sh: $build/compile_commands.json is missing" >&2; exit 1; }

if [ $# -gt 0 ]; then
  sources=("$@")
  tests=()
else
  mapfile -t sources < <(git ls-files '*.cpp' | grep -vE '_(test|properties|cuda|rocm)\.cpp$|/fuzz/')
  mapfile -t tests < <(git ls-files '*.cpp' | grep -E '_(test|properties)\.cpp$')
fi
[ ${#sources[@]} -gt 0 ] || { echo "tidy.sh: found no source" >&2; exit 1; }

# clang knows neither g++'s flags nor the launcher; both are stripped by clang-tidy itself.
run() { printf '%s\0' "$@" | xargs -0 -P "$(nproc)" -n 4 clang-tidy-19 -p "$build" --quiet "${options[@]}" 2>/dev/null; }
options=()
run "${sources[@]}"
if [ ${#tests[@]} -gt 0 ]; then
  options=(--checks='-*,clang-diagnostic-*')
  run "${tests[@]}"
fi
echo "tidy: ${#sources[@]} sources, ${#tests[@]} tests"
