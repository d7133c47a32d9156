#!/usr/bin/env bash
# A runner with AMX. Everything that only real tiles can show: the self-check of the emulation, hashes
# of 2,000 outputs against the recorded ones, the regressions of the prefix rule and the seeded defects
# on this kernel, a campaign, and the benchmark. Anywhere else it ends with status 4 and the reason.
# ATTEST_CASES: cases a signature (default 5000). ATTEST_PRESET: build preset (default xeon).
set -euo pipefail
cd "$(dirname "$0")/.."
step() { printf '\n== %s (%s s)\n' "$1" "$SECONDS"; }

for flag in amx_tile amx_bf16 amx_int8; do
  grep -qw "$flag" /proc/cpuinfo && continue
  echo "xeon: amx@native is required: no $flag among the flags of /proc/cpuinfo" >&2
  exit 4
done
export ATTEST_REQUIRE=${ATTEST_REQUIRE-amx@native}
preset=${ATTEST_PRESET-xeon}
build=build-$preset
case $preset in dev | ci) build=build ;; esac
out=$PWD/attest-out
mkdir -p "$out"

step "set-up and build"
scripts/setup.sh
scripts/build.sh "$preset"
attest=$build/bin/attest
# CPUID is not enough: the kernel must grant tile data to this process.
"$attest" doctor

step "tests, those that need the device among them"
ctest --preset "$preset" -j "$(nproc)" --output-junit "$out/ctest.xml"

step "hashes of 2,000 outputs, native and emulated"
"$build/bin/amx_hash_test" --gtest_output=xml:"$out/hash-native.xml"
ATTEST_AMX=patch "$build/bin/amx_hash_test" --gtest_output=xml:"$out/hash-patch.xml"

step "the prefix rule on this kernel: pre-fix metadata fails, fixed metadata passes"
"$attest" replay fixtures/corpus/regressions/sglang-36430.*.json --backend amx.extend@native,amx.decode@native \
  --junit "$out/regressions.xml"

step "two seeded defects on real tiles (the tests above hold all of them)"
# A defect is not the engine that ATTEST_REQUIRE names, so the requirement does not apply to this step.
ATTEST_REQUIRE='' "$attest" run --backend faulty-logit_cap_ignored.extend@native,faulty-f16_as_bf16.extend@native --expect-caught --cases 600 --shrink-time 0 --quiet \
  --out "$out/found"

step "campaign"
"$attest" run --backend amx.extend@native,amx.decode@native --cases "${ATTEST_CASES:-5000}" \
  --seed "${ATTEST_SEED:-1}" --junit "$out/campaign.xml" --record "$out/campaign.jsonl" --quiet --out "$out/found"

step "benchmark"
"$attest" bench amx --json >"$out/bench.json"
cat "$out/bench.json"
