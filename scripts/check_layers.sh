#!/usr/bin/env bash
# Includes point only up the list of layers (docs/architecture.md). Usage: scripts/check_layers.sh [root]
# Prints every include that does not, and fails; fails too when it looked at nothing.
set -euo pipefail
cd "${1:-$(dirname "$0")/..}"

# What each folder may include, itself aside. reference, backends and fixtures never see one another.
declare -A may=(
  [contracts]=""
  [memory]="contracts"
  [reference]="contracts memory"
  [backends]="contracts memory"
  [fixtures]="contracts memory"
  [property_tests]="contracts memory reference backends fixtures"
  [cli]="contracts memory reference backends fixtures property_tests"
)
bad=0
seen=0
while IFS=: read -r file line include; do
  folder=${file%%/*}
  target=${include#*\"}
  target=${target%%/*}
  seen=$((seen + 1))
  [ -n "${may[$target]+known}" ] || continue
  [ "$target" = "$folder" ] && continue
  if [[ " ${may[$folder]} " != *" $target "* ]]; then
    echo "$file:$line: $folder must not include $target"
    bad=$((bad + 1))
  fi
done < <(grep -rnE '^#include "' --include='*.hpp' --include='*.cpp' --include='*.h' --include='*.hip' "${!may[@]}")

# contracts and memory stand on the standard library; JSON, CLI11 and Eigen stay out of headers; the test
# frameworks too, save in the judge's own test headers.
while IFS=: read -r file line text; do
  echo "$file:$line: $text is not for this file"
  bad=$((bad + 1))
done < <(grep -rnE '#include <(nlohmann|CLI|Eigen)/' --include='*.hpp' "${!may[@]}" || true
         grep -rnE '#include <(rapidcheck|gtest|gmock)[/.]' --include='*.hpp' contracts memory reference backends fixtures cli || true
         grep -rnE '#include <(nlohmann|CLI|Eigen)/' --include='*.cpp' contracts memory || true)

if [ "$seen" -eq 0 ]; then echo "check_layers: no include found, nothing was checked"; exit 1; fi
if [ "$bad" -gt 0 ]; then echo "check_layers: $bad bad includes"; exit 1; fi
echo "check_layers: $seen includes, all point up"
