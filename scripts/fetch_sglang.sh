#!/usr/bin/env bash
# Fetches the SGLang releases whose backends the framework tests drive. Usage: scripts/fetch_sglang.sh [--help]
# They go to $ATTEST_SGLANG_WHEELS (default ~/.cache/attest/wheels), are not installed, and only read.
set -euo pipefail
case "${1:-}" in
  "") ;;
  *) sed -n 2,3p "$0" | cut -c 3- >&2; [ "$1" = --help ] && exit 0 || exit 64 ;;
esac
folder=${ATTEST_SGLANG_WHEELS:-${XDG_CACHE_HOME:-$HOME/.cache}/attest/wheels}
# 0.5.16 and 0.5.18: before and between the fixes; 0.5.19 and 0.5.20: after them (docs/recorder.md).
versions=(0.5.16 0.5.18 0.5.19 0.5.20)
mkdir -p "$folder"
for version in "${versions[@]}"; do
  compgen -G "$folder/sglang-$version-*.whl" >/dev/null && continue
  echo "fetch: sglang $version"
  # One wheel whatever Python is here: two of its text files are read, nothing runs as a package.
  python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: \
    --python-version 3.11 --implementation cp --abi cp311 --platform manylinux_2_34_x86_64 \
    --dest "$folder" "sglang==$version" || {
    echo "fetch_sglang.sh: pip could not download sglang $version" >&2
    exit 4
  }
done
echo "fetch: sglang ${versions[*]} in $folder"
