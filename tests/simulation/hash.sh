#!/usr/bin/env bash
# Aim: a seed tells one story, whatever the compiler does. Method: the simulator is built without
# optimisation, with it, and under the address and undefined-behaviour sanitizers; a few dozen seeds
# must give one trace hash in all of them, and the same when they are run again.
# Usage: hash.sh [SEEDS [VARIANTS]]; prints TAP.
set -u
cd "$(dirname "$0")/../.." || exit 1
seeds=${1:-48}
read -ra variants <<<"${2:-release debug asan}"
first=${FIRST:-1}
want=
failed=0
run() { "build/$1/tests/simulation/wide/sim" --first "$first" --seeds "$seeds" --shrink 0 | sed -n 's/^# simulation: violations 0, trace \([0-9a-f]*\),.*/\1/p'; }
for variant in release "${variants[@]}"; do
    flock "build/$variant.lock" make -s -j2 VARIANT="$variant" simulator >&2 || { echo "not ok - trace hash: $variant does not build"; exit 1; }
    got=$(run $variant)
    want=${want:-$got}
    if [ -n "$got" ] && [ "$got" = "$want" ]; then
        echo "ok - trace hash of $seeds seeds, $variant: $got"
    else
        echo "not ok - trace hash of $seeds seeds, $variant: '$got', not '$want'"
        failed=1
    fi
done
exit $failed
