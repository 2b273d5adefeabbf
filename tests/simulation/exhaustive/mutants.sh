#!/usr/bin/env bash
# Aim: show that the exhaustive check finds bugs. Method: each patch in mutants/ plants one in a copy
# of core/protocol/protocol.c; only that object is compiled anew, the checker is linked with it, and must find
# a broken promise within 60 CPU seconds. A patch that does not apply, or a bug that is not found, fails.
# Usage: mutants.sh [NAME ...]; prints TAP lines. Needs a built checker (make exhaustive).
set -u
cd "$(dirname "$0")/../../.." || exit 1
here=tests/simulation/exhaustive
out=build/release/tests/simulation/exhaustive
export out here

one() {
    name=$1
    dir=$out/mutants/$name
    rm -rf "$dir" && mkdir -p "$dir/orchestrator/core/protocol" || exit 1
    cp orchestrator/core/protocol/protocol.c "$dir/orchestrator/core/protocol/"
    if ! patch -s -f -F 2 -p1 -d "$dir" < "$here/mutants/$name.patch" > "$dir/log" 2>&1; then
        echo "not ok - mutant $name: the patch does not apply"
        return
    fi
    if ! ${CC:-gcc} -std=gnu17 -D_GNU_SOURCE -O2 -w -fPIE -Iinclude -Iorchestrator -Iorchestrator/core/protocol \
        -c "$dir/orchestrator/core/protocol/protocol.c" -o "$dir/protocol.o" > "$dir/log" 2>&1 ||
        ! ${CC:-gcc} -pie -o "$dir/exhaustive" "$out"/{exhaustive,world,world_calls,world_check}.o "$dir/protocol.o" \
            build/release/orchestrator/core/states/lifecycle.o > "$dir/log" 2>&1; then
        echo "not ok - mutant $name: does not compile"
        return
    fi
    began=$(date +%s%N)
    (ulimit -t 60 && exec "$dir/exhaustive" --walks 2000) > "$dir/log" 2>&1
    status=$?
    took=$(awk -v ns=$(($(date +%s%N) - began)) 'BEGIN { printf "%.1f", ns / 1e9 }')
    if [ $status -eq 1 ] && grep -q '^# BROKEN' "$dir/log"; then
        echo "ok - mutant $name: found in $took s: $(sed -n 's/^# BROKEN in //p' "$dir/log" | head -1)"
        rm -rf "$dir"
    else
        echo "not ok - mutant $name: not found (exit $status, see $dir/log)"
    fi
}
export -f one
if [ $# -gt 0 ]; then printf '%s\n' "$@"; else basename -s .patch -a $here/mutants/*.patch; fi |
    xargs -P 2 -I{} bash -c 'one {}' | tee $out/mutants.log
[ -s $out/mutants.log ] && ! grep -q '^not ok' $out/mutants.log
