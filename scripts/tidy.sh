#!/usr/bin/env bash
# Static findings in the sources: clang-tidy-19 with the repository's .clang-tidy, clang's warnings included.
# Usage: scripts/tidy.sh BUILD_DIR [file ...]     Without files: every source that is not a test.
# A finding, a crash, and a source that the build does not compile all fail. Tests are the bulk of the
# parsing and none of what ships: clang's warnings over them are the clang preset's, not this script's. Sources
# for GPU compilers (*_cuda.cpp, *_rocm.cpp) are theirs to warn about, and docs/examples/ is a project of its own.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -ge 1 ] || { sed -n 3p "$0" | cut -c 3- >&2; exit 64; }
build=$1
shift
database=$build/compile_commands.json
[ -f "$database" ] || { echo "tidy.sh: $database is missing; configure $build first" >&2; exit 1; }

sources=("$@")
if [ $# -eq 0 ]; then
  mapfile -t sources < <(git ls-files '*.cpp' | grep -vE '_(test|properties|cuda|rocm)\.cpp$|/fuzz/|^docs/examples/')
fi
[ ${#sources[@]} -gt 0 ] || { echo "tidy.sh: found no source" >&2; exit 1; }

# clang-tidy would borrow the command of a file with a similar name.
unknown=0
for source in "${sources[@]}"; do
  grep -qF "\"file\": \"$(realpath "$source")\"" "$database" && continue
  echo "tidy.sh: $source has no command in $database" >&2
  unknown=1
done
[ "$unknown" -eq 0 ] || exit 1

# stderr carries a count of warnings suppressed in system headers, per file, and everything that
# matters: the count goes, the rest stays.
if ! printf '%s\0' "${sources[@]}" | xargs -0 -P "$(nproc)" -n 1 clang-tidy-19 -p "$build" --quiet \
    2> >(grep -vE '^[0-9]+ warnings?( and [0-9]+ errors?)? generated\.$' >&2); then
  echo "tidy: findings or crashes above" >&2
  exit 1
fi
echo "tidy: no finding in ${#sources[@]} sources"
