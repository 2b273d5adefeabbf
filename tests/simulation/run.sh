#!/usr/bin/env bash
# The exhaustive check of the submit protocol with the planted bugs it must find, then simulated
# campaigns: SEEDS seeds from FIRST on, and every seed that ever broke a promise (seeds.txt).
# Then named situations, and five of the bugs planted in all of core, drawn by the day. Prints TAP.
set -u
cd "$(dirname "$0")/../.." || exit 1
seeds=${SEEDS:-2000}
first=${FIRST:-1}
out=build/release/tests/simulation
make -s -j2 VARIANT=release exhaustive simulator >&2 || { echo "not ok - simulation: does not build"; exit 1; }
failed=0
$out/exhaustive/exhaustive || failed=1
bash tests/simulation/exhaustive/mutants.sh || failed=1
$out/wide/sim --first "$first" --seeds "$seeds" --jobs 2 --list tests/simulation/wide/seeds.txt $([ "$seeds" -ge 1500 ] && echo --coverage) || failed=1
$out/wide/scenarios || failed=1
bash tests/simulation/wide/mutants.sh --draw 5 || failed=1
exit $failed
