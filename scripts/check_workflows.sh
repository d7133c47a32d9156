#!/usr/bin/env bash
# Fails when a workflow runs anything but a script of ci/, so that every job can be run by hand.
# Usage: scripts/check_workflows.sh [ROOT]
set -euo pipefail
cd "${1:-"$(dirname "$0")/.."}"
# A bare container has no git, which the checkout needs.
bootstrap='apt-get update -q && apt-get install -y -q git ca-certificates'
seen=0
bad=0
while IFS= read -r line; do
  command=$(sed -E 's/^[^:]*:[0-9]+:[ -]*run:[ ]*//' <<<"$line")
  [ "$command" != "$bootstrap" ] || continue
  seen=$((seen + 1))
  if [[ $command =~ ^ci/[a-z_]+\.sh$ ]] && [ -x "$command" ]; then continue; fi
  echo "check_workflows: ${line%%:*} runs '$command', which is no script of ci/"
  bad=$((bad + 1))
done < <(grep -nHE '^[ -]*run:' .github/workflows/*.yml)
if [ "$seen" -eq 0 ]; then echo "check_workflows: no workflow runs anything"; exit 1; fi
if [ "$bad" -gt 0 ]; then exit 1; fi
echo "check_workflows: $seen commands, all scripts of ci/"
