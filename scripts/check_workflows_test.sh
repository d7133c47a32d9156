#!/usr/bin/env bash
# check_workflows.sh must fail on a command, on a script that is not there, and on nothing at all.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/.github/workflows" "$work/ci"
touch "$work/ci/cpu.sh"
chmod +x "$work/ci/cpu.sh"

expect() {  # expect STATUS RUN TEXT: with this command, the check ends with STATUS and prints TEXT
  local status=0 output
  printf 'jobs:\n  a:\n    steps:\n      - %s\n' "$2" > "$work/.github/workflows/a.yml"
  output=$("$here/check_workflows.sh" "$work" 2>&1) || status=$?
  if [ "$status" -ne "$1" ] || [[ $output != *"$3"* ]]; then
    echo "expected status $1 and '$3', got status $status and: $output"
    exit 1
  fi
}

expect 0 "run: ci/cpu.sh" "1 commands, all scripts"
expect 1 "run: ninja -C build" "runs 'ninja -C build'"
expect 1 "run: ci/gone.sh" "runs 'ci/gone.sh'"
expect 1 "run: |" "runs '|'"
expect 1 "uses: actions/checkout@v4" "no workflow runs anything"
echo "check_workflows_test: all caught"
