#!/usr/bin/env bash
# Installs what attest needs to build and test. Asks nothing; does nothing when all is there.
# Usage: scripts/setup.sh [--lint] [--framework-tests] [--help]
#   --lint adds clang-19 and its sanitizers, clang-format-19, clang-tidy-19; --framework-tests fetches SGLang's releases (90 MB)
set -euo pipefail

packages=(g++ make cmake ninja-build ccache git libeigen3-dev libgtest-dev libgmock-dev librapidcheck-dev
          libcli11-dev nlohmann-json3-dev libboost-context-dev python3 python3-numpy)
framework_tests=false
for argument in "$@"; do
  case "$argument" in
    --lint) packages+=(clang-19 libclang-rt-19-dev llvm-19 clang-format-19 clang-tidy-19) ;;  # llvm-19: stacks with lines
    --framework-tests) framework_tests=true; packages+=(python3-pip) ;;
    --help) sed -n 2,4p "$0" | cut -c 3-; exit 0 ;;
    *) echo "setup.sh: unknown argument '$argument' (see --help)" >&2; exit 64 ;;
  esac
done

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
  echo "setup.sh: no apt-get here. Install by hand: ${packages[*]}" >&2
  echo "setup.sh: or configure with -DATTEST_FETCH_DEPS=ON, which needs only a compiler, CMake, git, Ninja and Boost.Context." >&2
  exit 4
fi

missing=()
for package in "${packages[@]}"; do
  state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$state" = installed ] || missing+=("$package")
done
finish() {
  if $framework_tests; then "$(dirname "$0")/fetch_sglang.sh"; fi
  echo "setup: $1"
  exit 0
}
# Any pip will do: machines with a Python of their own need not have the system's.
if $framework_tests && python3 -m pip --version >/dev/null 2>&1; then
  for i in "${!missing[@]}"; do [ "${missing[i]}" != python3-pip ] || unset "missing[i]"; done
fi
[ ${#missing[@]} -gt 0 ] || finish "everything is installed"

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "setup.sh: need root to install: apt-get install ${missing[*]}" >&2
    exit 4
  fi
  as_root=(sudo)
fi
echo "setup: installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! { "${as_root[@]}" apt-get update -q && "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
       apt-get install -y -q --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
  tail -n 20 "$log" >&2
  echo "setup.sh: apt-get failed, see above" >&2
  exit 4
fi
finish "done"
