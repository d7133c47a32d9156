#!/usr/bin/env bash
# check_layers.sh must fail on an include that points down, on one between siblings, and on nothing at all.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/{contracts,memory,reference,backends,fixtures,property_tests,cli}

expect() {  # expect STATUS TEXT: the check ends with STATUS and prints TEXT
  local status=0 output
  output=$("$here/check_layers.sh" "$work" 2>&1) || status=$?
  if [ "$status" -ne "$1" ] || [[ $output != *"$2"* ]]; then
    echo "expected status $1 and '$2', got status $status and: $output"
    exit 1
  fi
}

expect 1 "nothing was checked"
echo '#include "contracts/call.hpp"' > "$work/memory/fill.cpp"
expect 0 "1 includes, all point up"
echo '#include "backends/backend.hpp"' > "$work/reference/attention.cpp"
expect 1 "reference/attention.cpp:1: reference must not include backends"
rm "$work/reference/attention.cpp"
echo '#include "memory/fill.hpp"' > "$work/contracts/call.cpp"
expect 1 "contracts must not include memory"
rm "$work/contracts/call.cpp"
echo '#include <nlohmann/json.hpp>' > "$work/fixtures/fixture.hpp"
expect 1 "fixtures/fixture.hpp:1"
echo "check_layers_test: all caught"
