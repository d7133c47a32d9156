#!/usr/bin/env bash
# Formats every C++ file with clang-format-19. Usage: scripts/format.sh [--check]
# --check changes nothing and fails naming the files that differ.
set -euo pipefail
cd "$(dirname "$0")/.."
case "${1:-}" in
  "") mode=(-i) ;;
  --check) mode=(--dry-run --Werror) ;;
  *) sed -n 2,3p "$0" | cut -c 3- >&2; exit 64 ;;
esac
mapfile -t files < <(git ls-files --cached --others --exclude-standard '*.hpp' '*.cpp' '*.h' '*.hip')
[ ${#files[@]} -gt 0 ] || { echo "format.sh: found no C++ file" >&2; exit 1; }
clang-format-19 "${mode[@]}" "${files[@]}"
echo "format: ${#files[@]} files"
